"""Kinds of samples: the same kind comes back, with the same partitions."""

from __future__ import annotations

from typing import Any

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import xarray as xr

from daskdl.data import SampleSet
from daskdl.errors import DataError, PredictionError, SettingsError, ShapeError
from daskdl.nn import Linear, Module
from tests.daskdl.predict.networks import N, expected, inputs, network, same, small

X = inputs()
CHUNKS = (20, 1, 32)


@pytest.fixture(params=["here", "cluster"], autouse=True)
def where(request: pytest.FixtureRequest) -> str:
    """Every kind is predicted without a cluster and on one."""
    if request.param == "cluster":
        request.getfixturevalue("current")
    return str(request.param)


def array() -> da.Array:
    return da.from_array(X, chunks=(CHUNKS, (2, 1)))


@pytest.mark.slow
def test_an_array_gives_an_array_with_the_same_chunks():
    result = small().predict(array())
    assert (result.chunks, result.dtype) == ((CHUNKS, (2,)), np.float32)
    same(result.compute())
    classes = small().predict_class(array(), batch_size=7)
    assert (classes.chunks, classes.dtype) == ((CHUNKS,), np.int64)
    np.testing.assert_array_equal(classes.compute(), expected().argmax(1))
    assert small().embed(array(), "layers.1").chunks == (CHUNKS, (8,))


def test_chunks_may_be_empty_or_of_unknown_length():
    chosen = array()[da.from_array(np.arange(N) >= 21, chunks=(CHUNKS,))]
    result = small().predict(chosen)
    assert result.npartitions == 3
    assert np.isnan(result.chunks[0]).all()
    same(result.compute(), expected()[21:])


def test_a_bag_gives_a_bag(where):
    for elements in (list(X), [{"x": x, "y": 1} for x in X]):
        bag = db.from_sequence(elements, npartitions=4)
        result = small().predict(bag)
        assert isinstance(result, db.Bag)
        assert result.npartitions == bag.npartitions
        with dask.config.set({"scheduler": "sync"} if where == "here" else {}):
            same(np.stack(result.compute()))


@pytest.mark.slow
def test_a_dataframe_gives_one_with_its_index_and_divisions():
    frame = pd.DataFrame(X.astype(float), columns=list("abc"), index=2 * np.arange(N))
    lazy = dd.from_pandas(frame, npartitions=3)
    result = small().predict(lazy)
    assert result.divisions == lazy.divisions
    same(result.compute())
    assert (result.compute().index == frame.index).all()
    classes = small().predict_class(lazy).compute()
    assert isinstance(classes, pd.Series)
    np.testing.assert_array_equal(classes, expected().argmax(1))
    same(small().predict(frame))
    with pytest.raises(DataError, match=r"columns of numbers, found \['d'\]"):
        small().predict(lazy.assign(d="word"))


def test_xarray_keeps_coordinates():
    data = xr.DataArray(
        X, dims=("time", "f"), coords={"time": np.arange(N), "f": list("abc"), "station": 7}
    )
    for image in (data, data.chunk(time=CHUNKS)):
        result = small().predict(image, dims=["class"])
        assert result.dims == ("time", "class")
        assert set(result.coords) == {"time", "station"}
        assert result.chunks == (None if image.chunks is None else (CHUNKS, (2,)))
        same(result)
        whole = small().predict(image.to_dataset(name="rain"))
        assert whole["prediction"].dims == ("time", "output_0")
        same(whole["prediction"])
    same_axes = Linear(3, 3, seed=1).predict(data, dims=["f"])
    assert list(same_axes["f"].values) == ["a", "b", "c"]
    with pytest.raises(ShapeError, match=r"shape \(2,\), found \('a', 'b'\)"):
        small().predict(data, dims=("a", "b"))
    with pytest.raises(DataError, match=r"with one variable, found \['a', 'b'\]"):
        small().predict(xr.Dataset({"a": data, "b": data}))


def test_a_sample_set_gives_an_array_of_its_partitions():
    samples = SampleSet.from_arrays(x=X, partitions=4)
    result = small().predict(samples)
    assert result.chunks == (samples.lengths, (2,))
    same(result.compute())


def test_a_mistake_shows_before_any_task():
    with pytest.raises(ShapeError, match=r"^Linear: expected an input of shape \(..., 3\)"):
        small().predict(da.ones((9, 4), chunks=3))
    with pytest.raises(SettingsError, match="predict, batch_size: expected a whole number"):
        small().predict(array(), batch_size=0)
    with pytest.raises(SettingsError, match="predict, dims: expected with a DataArray"):
        small().predict(array(), dims=["class"])
    with pytest.raises(DataError, match=r"expected a dask Array \(N, ...\), found shape \(\)"):
        small().predict(array().sum())
    words = pd.DataFrame({"a": [1.0], "b": ["x"]})
    for frame in (words, dd.from_pandas(words, npartitions=1)):
        with pytest.raises(DataError, match=r"expected columns of numbers, found \['b'\]"):
            small().predict(frame)


class FailsAt(Module):
    """Raises where a number is above 50."""

    def forward(self, x: Any) -> Any:
        if np.max(x) > 50:
            raise ZeroDivisionError("a mistake of the user's")
        return x


def test_an_exception_names_the_partition():
    numbers = da.arange(N, chunks=10).reshape(N, 1).astype(np.float32)
    result = FailsAt().predict(numbers)
    with pytest.raises(PredictionError, match=r"prediction, partition 5.*ZeroDivisionError: a mis"):
        result.compute()


def test_later_changes_of_the_model_do_not_reach_lazy_results():
    model = network()
    result = model.predict(array())
    model.flat[:] = 0
    same(result.compute())
