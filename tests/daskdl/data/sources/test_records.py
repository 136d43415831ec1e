"""Records: made samples; those that cannot be are named and counted."""

from __future__ import annotations

import logging

import dask.bag as db
import numpy as np
import pytest

from daskdl.data import SampleSet
from daskdl.data.sources.records import Records, as_sample
from daskdl.errors import DataError


def half(i):
    if i == 3:
        raise OSError("truncated")
    return np.zeros((2, 2 + (i == 5))), i


def test_what_a_record_may_be():
    assert as_sample({"a": 1}) == {"a": 1}
    assert as_sample((1, 2)) == {"x": 1, "y": 2}
    assert as_sample(3) == {"x": 3}


def test_a_bad_record_is_named():
    with pytest.raises(DataError, match=r"row 3: .*OSError: truncated\); on_error='skip' leaves"):
        Records(half, name="row")(range(5))
    with pytest.raises(DataError, match=r"record 2: .*expected x of 2 axes \(2,\), .* \(3,\)"):
        Records(half)([0, 1, 5])


def test_bad_records_are_left_out_and_told(caplog):
    bag = db.from_sequence(range(8), npartitions=2)
    samples = SampleSet.from_bag(bag, half, on_error="skip")
    with caplog.at_level(logging.WARNING, "daskdl"):
        assert len(samples) == 6
    (said,) = (record.getMessage() for record in caplog.records)
    assert said.startswith("2 of 8 records left out: bag 0, element 3 (OSError: truncated); bag 1")
    first, second = samples.bad
    assert first == "bag 0, element 3 (OSError: truncated)"
    assert second.startswith("bag 1, element 1 (expected x of 2 axes (2,)")
    test, train = samples.shuffle().split((0.5, 0.5))
    assert sorted([*test.head(9)["y"], *train.head(9)["y"]]) == [0, 1, 2, 4, 6, 7]
    assert set(test.bad) == {first, second}


def test_a_partition_of_bad_records_alone_is_empty():
    samples = SampleSet.from_bag(db.from_sequence([3, 3, 1], npartitions=3), half, on_error="skip")
    assert samples.lengths == (0, 0, 1)
    assert samples.repartition(3).head()["y"].tolist() == [1]
    with pytest.raises(
        DataError, match="expected at least one sample, found none after 1 were left out"
    ):
        len(SampleSet.from_bag(db.from_sequence([3]), half, on_error="skip"))
