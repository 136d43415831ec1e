"""Exports: other collections hold the same samples in the same partitions."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.data import Ragged, SampleSet
from daskdl.errors import DataError


def samples():
    words = Ragged.of([[i] * (i % 3) for i in range(7)])
    made = SampleSet.from_arrays(x=np.arange(7), y=np.eye(7, 2), words=words, partitions=3)
    return made.map(lambda batch: {**batch, "x": 2 * batch["x"]})


def test_a_dask_array_has_a_chunk_for_each_partition():
    array = samples().to_dask_array("y")
    assert (array.chunks, array.dtype) == (((2, 2, 3), (2,)), np.float64)
    np.testing.assert_array_equal(array.compute(scheduler="sync"), np.eye(7, 2))
    assert samples().to_dask_array().compute(scheduler="sync").tolist() == [*range(0, 14, 2)]
    with pytest.raises(DataError, match=r"found words ragged; pad it by map\(\)"):
        samples().to_dask_array("words")
    with pytest.raises(DataError, match=r"one of \['words', 'x', 'y'\], found 'z'"):
        samples().to_dask_array("z")


def test_a_bag_holds_dicts():
    bag = samples().to_bag()
    assert bag.npartitions == 3
    elements = bag.compute(scheduler="sync")
    assert [e["x"] for e in elements] == [*range(0, 14, 2)]
    assert elements[5]["words"].tolist() == [5, 5]


def test_a_data_frame_has_a_column_for_each_number():
    frame = samples().to_dataframe()
    assert (frame.npartitions, list(frame.columns)) == (3, ["x", "y_0", "y_1", "words"])
    held = frame.compute(scheduler="sync")
    assert held["x"].tolist() == [*range(0, 14, 2)]
    assert held["y_1"].tolist() == [0, 1, 0, 0, 0, 0, 0]
    again = SampleSet.from_dataframe(frame, x="x", y=["y_0", "y_1"])
    assert again.lengths == (2, 2, 3)
    np.testing.assert_array_equal(again.head(7)["y"], np.eye(7, 2))


def test_a_dataset_has_a_dimension_of_samples():
    plain = SampleSet.from_arrays(x=np.arange(7), y=np.eye(7, 2), partitions=3)
    data = plain.to_xarray("time")
    assert dict(data.sizes) == {"time": 7, "y_1": 2}
    again = SampleSet.from_xarray(data, dim="time", x="x", y="y")
    assert again.lengths == (2, 2, 3)
    assert again.head(7)["x"].tolist() == [*range(7)]
