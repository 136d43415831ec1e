"""Collected: pieces of Dask's collections, and what they may hold."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
from dask.delayed import delayed

from daskdl.data import SampleSet
from daskdl.data.sources.collections import tasks_by_partition
from daskdl.errors import DataError
from daskdl.nn import Linear
from tests.daskdl.data.epochs import everything


def test_a_piece_has_the_tasks_it_needs_and_no_others():
    array = da.ones((6, 2), chunks=(2, 2)).cumsum(axis=0)
    found = tasks_by_partition(array)
    assert len(found) == 3
    sizes = [len(tasks) for tasks, _ in found]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[2]  # the sum of the last one needs all before


def test_arrays_beside_others_are_cut_alike():
    x, y = da.arange(10, chunks=3), da.arange(10, chunks=(4, 6)) * 2
    samples = SampleSet.from_arrays(x=x, y=y, z=np.arange(10))
    assert samples.lengths == (3, 3, 3, 1)
    held = everything(samples)
    np.testing.assert_array_equal(held["y"], 2 * held["x"])
    np.testing.assert_array_equal(held["z"], held["x"])


def test_chunks_of_unknown_length_have_to_be_alike():
    x = da.arange(10, chunks=5)
    some = x[x > 2]
    assert SampleSet.from_arrays(x=some, y=some * 2).lengths == (2, 5)
    with pytest.raises(DataError, match="the same chunks in all"):
        SampleSet.from_arrays(x=some, y=x)
    with pytest.raises(DataError, match="found y as ndarray"):
        SampleSet.from_arrays(x=some, y=np.arange(7))
    with pytest.raises(DataError, match=r"arrays of one length, found {'x': 2, 'y': 5}"):
        len(SampleSet.from_arrays(x=some, y=x[x > -1]))


def test_a_delayed_object_is_a_dict_of_arrays():
    values = [delayed(np.arange)(n) for n in (2, 3)]
    samples = SampleSet.from_delayed(values, lambda x: {"x": x}, lengths=[2, 3])
    assert samples.is_counted
    assert everything(samples)["x"].tolist() == [0, 1, 0, 1, 2]
    with pytest.raises(DataError, match=r"delayed object . to be a dict of arrays, found ndarray"):
        len(SampleSet.from_delayed(values))


def test_what_is_masked_is_no_data():
    x = np.arange(12, dtype=np.float32).reshape(6, 2)
    lazy = da.ma.masked_greater(da.from_array(x, chunks=(3, 2)), 8)
    held = everything(SampleSet.from_arrays(x=lazy))["x"]
    np.testing.assert_array_equal(held, np.where(x > 8, np.nan, x))
    whole = da.ma.masked_greater(da.from_array(x.astype(int), chunks=(3, 2)), 8)
    with pytest.raises(DataError, match=r"no masked elements of int64, .* found 3"):
        everything(SampleSet.from_arrays(x=whole))
    found = Linear(2, 1, seed=0).predict(np.ma.masked_greater(x, 8))
    np.testing.assert_array_equal(np.isnan(found[:, 0]), (x > 8).any(1))
