"""Exports: other collections hold the same samples in the same partitions."""

from __future__ import annotations

import dask
import dask.array as da
import dask.bag as db
import numpy as np
import pytest
import xarray as xr

from daskdl.data import Ragged, SampleSet
from daskdl.data.display import size
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
    table = frame.compute(scheduler="sync")
    assert table["x"].tolist() == [*range(0, 14, 2)]
    assert table["y_1"].tolist() == [0, 1, 0, 0, 0, 0, 0]
    again = SampleSet.from_dataframe(frame, x="x", y=["y_0", "y_1"])
    assert again.lengths == (2, 2, 3)
    np.testing.assert_array_equal(again.head(7)["y"], np.eye(7, 2))


def test_a_dataset_has_a_dimension_of_samples():
    dense = SampleSet.from_arrays(x=np.arange(7), y=np.eye(7, 2), partitions=3)
    data = dense.to_xarray("time")
    assert dict(data.sizes) == {"time": 7, "y_1": 2}
    again = SampleSet.from_xarray(data, dim="time", x="x", y="y")
    assert again.lengths == (2, 2, 3)
    assert again.head(7)["x"].tolist() == [*range(7)]


def test_a_repr_is_one_line():
    words = Ragged.of([[1], [2, 3], [4]])
    samples = SampleSet.from_arrays(
        x=np.zeros((3, 2), np.uint8), name=np.array(["a", "b", "c"]), words=words, partitions=2
    )
    assert repr(samples.map(lambda batch: {"x": batch["x"]})) == (
        "SampleSet(x: u8[2]; 3 samples in 2 partitions, 90 B, in this process)"
    )
    assert repr(samples).startswith("SampleSet(x: u8[2], name: U32[], words: i64[*]; 3 samples")


def test_showing_samples_does_not_count_them():
    read = []
    bag = db.from_sequence(range(4), npartitions=2).map(lambda i: read.append(i) or i)
    samples = SampleSet.from_bag(bag)
    assert repr(samples) == "SampleSet(...; samples not counted yet, in 2 partitions)"
    assert "not counted yet" in samples._repr_html_()
    assert read == []
    samples.counted()
    read.clear()
    assert repr(samples).startswith("SampleSet(...; 4 samples in 2 partitions, ")
    assert read == []
    assert samples.schema == {"x": ((), np.dtype(int))}
    read.clear()
    assert repr(samples).startswith("SampleSet(x: i64[]; 4 samples in 2 partitions, ")
    assert read == []


def test_shapes_of_dask_arrays_and_xarray_are_shown():
    x = da.zeros((6, 3), chunks=(2, 3), dtype="f4")
    assert repr(SampleSet.from_arrays(x=x, y=np.arange(6))) == (
        "SampleSet(x: f32[3], y: i64[]; 6 samples in 3 partitions, 120 B)"
    )
    unknown = SampleSet.from_arrays(x=x[x[:, 0] < 1])
    assert repr(unknown) == "SampleSet(x: f32[3]; samples not counted yet, in 3 partitions)"
    data = xr.Dataset({"u": (("t", "y"), x), "v": (("t", "y"), x)})
    assert repr(SampleSet.from_xarray(data, dim="t", x=["u", "v"])).startswith(
        "SampleSet(x: f32[3, 2]; 6 samples in 3 partitions"
    )


@pytest.mark.slow
def test_bytes_are_those_that_workers_hold(client):
    small = SampleSet.from_arrays(x=np.zeros((8, 1000)), partitions=2)
    grown = small.map_batches(lambda batch: {"x": np.repeat(batch["x"], 5, axis=1)}).persist(client)
    assert [len(recipe.load()) for recipe in grown.recipes] == [4, 4]  # waits for both
    assert "8 samples in 2 partitions, 320 kB, " in repr(grown)
    assert "<td>320 kB</td>" in grown._repr_html_()


def test_unknown_bytes_are_not_shown():
    parts = SampleSet.from_delayed([dask.delayed({"x": np.arange(3)})], lengths=[3])
    assert repr(parts) == "SampleSet(...; 3 samples in 1 partition)"
    assert "<td>not known</td>" in parts._repr_html_()


def test_html_is_a_table():
    html = SampleSet.from_arrays(x=np.arange(5.0), partitions=2)._repr_html_()
    for text in ("2 of 2 to 3 samples", "40 B", "in this process", "f64[]"):
        assert f"<td>{text}</td>" in html
    named = SampleSet.from_arrays(**{"<b>": np.arange(2)})._repr_html_()
    assert "&lt;b&gt;" in named
    assert "<b>" not in named


@pytest.mark.parametrize(("nbytes", "text"), [(12, "12 B"), (7.8e6, "7.8 MB"), (2e15, "2e+03 TB")])
def test_sizes(nbytes, text):
    assert size(nbytes) == text
