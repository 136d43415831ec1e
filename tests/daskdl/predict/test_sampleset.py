"""SampleSets: partitions, where their data lie, functions, and lengths that are not known."""

from __future__ import annotations

from typing import Any

import cloudpickle
import dask.bag as db
import numpy as np
import pytest

from daskdl.data import SampleSet
from daskdl.errors import DataError
from daskdl.nn import Module
from daskdl.ops import mean
from daskdl.tensor import Tensor
from tests.daskdl.predict.networks import expected, inputs, same, small

X = inputs()


def halved(batch: dict[str, Any]) -> dict[str, Any]:
    return {"x": batch["x"] / 2}


def positive(batch: dict[str, Any]) -> Any:
    return batch["x"][:, 0] > 0


def test_functions_and_filters_are_applied():
    samples = SampleSet.from_arrays(x=2 * X, y=X, partitions=4)
    same(small().predict(samples.map(halved)).compute())
    same(small().predict(samples.filter(positive).map(halved)).compute(), expected()[X[:, 0] > 0])


def test_samples_have_x():
    with pytest.raises(DataError, match=r"expected samples with x, found \['image'\]"):
        small().predict(SampleSet.from_arrays(image=X))


def test_lengths_may_be_unknown_and_stay_so():
    bag = db.from_sequence([{"x": x} for x in X], npartitions=3)
    samples = SampleSet.from_bag(bag)
    result = small().predict(samples)
    assert not samples.is_counted
    assert result.numblocks == (3, 1)
    assert np.isnan(result.chunks[0]).all()
    same(result.compute(scheduler="sync"))


@pytest.mark.slow
def test_samples_on_a_cluster_are_used_where_they_are(current):
    samples = SampleSet.from_arrays(x=X, partitions=4).persist()
    result = small().predict(samples)
    assert result.chunks == (samples.lengths, (2,))
    same(result.compute())
    x = np.zeros((50_000, 3), np.float32)
    large = small().predict(SampleSet.from_arrays(x=x, partitions=4))
    assert len(cloudpickle.dumps(large.dask)) < 20_000
    assert large.sum().compute() == pytest.approx(small().predict(x).sum(dtype=float), rel=1e-3)


def test_skipped_records_are_logged(caplog):
    def odd(i):
        return X[i] if i != 5 else X[:2]

    bag = db.from_sequence(range(8), npartitions=2)
    samples = SampleSet.from_bag(bag, odd, on_error="skip")
    with caplog.at_level("WARNING", "daskdl"):
        result = small().predict(samples).compute(scheduler="sync")
    same(result, np.delete(expected()[:8], 5, 0))
    assert "1 of 4 records left out: bag 1, element 1 (expected x of 1 axes" in caplog.text


class Centred(Module):
    """Subtracts the mean of the whole batch."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the samples less their mean."""
        return x - mean(x)


def test_the_samples_of_a_partition_pass_together():
    samples = SampleSet.from_arrays(x=X, partitions=2)
    parts = np.split(X, np.cumsum(samples.lengths)[:-1])
    wanted = np.concatenate([part - part.mean() for part in parts])
    np.testing.assert_allclose(Centred().predict(samples).compute(), wanted, atol=1e-6)
    np.testing.assert_allclose(Centred().predict(X), X - X.mean(), atol=1e-6)


@pytest.mark.parametrize("remaining", [slice(0, 4), slice(4, 12)], ids=["last", "first"])
def test_partitions_of_a_bag_without_samples_have_no_results(remaining):
    wanted = {float(x) for x in X[:12][remaining].ravel()}
    bag = db.from_sequence([{"x": x} for x in X[:12]], npartitions=3)
    samples = SampleSet.from_bag(bag.filter(lambda element: float(element["x"].flat[0]) in wanted))
    same(small().predict(samples.persist()).compute(), expected()[:12][remaining])


class Doubled(Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2.0


def test_partitions_whose_samples_are_all_left_out_have_no_results():
    filtered = SampleSet.from_arrays(x=X, partitions=len(X)).filter(
        lambda batch: batch["x"][:, 0] > 0
    )
    np.testing.assert_array_equal(Doubled().predict(filtered).compute(), 2 * X[X[:, 0] > 0])
