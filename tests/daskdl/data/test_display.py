"""Display: schema, samples, partitions, bytes and where they lie, at no cost."""

from __future__ import annotations

import dask
import dask.array as da
import dask.bag as db
import numpy as np
import pytest
import xarray as xr

from daskdl.data import Ragged, SampleSet
from daskdl.data.display import size


def test_a_line():
    words = Ragged.of([[1], [2, 3], [4]])
    samples = SampleSet.from_arrays(
        x=np.zeros((3, 2), np.uint8), name=np.array(["a", "b", "c"]), words=words, partitions=2
    )
    assert repr(samples.map(lambda batch: {"x": batch["x"]})) == (
        "SampleSet(x: u8[2]; 3 samples in 2 partitions, 90 B, in this process)"
    )
    assert repr(samples).startswith("SampleSet(x: u8[2], name: U32[], words: i64[*]; 3 samples")


def test_what_is_not_counted_is_not_counted_for_it():
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


def test_what_dask_arrays_and_xarray_tell_is_shown():
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
    held = SampleSet.from_arrays(x=np.zeros((8, 1000)), partitions=2)
    grown = held.map_batches(lambda batch: {"x": np.repeat(batch["x"], 5, axis=1)}).persist(client)
    assert [len(recipe.load()) for recipe in grown.recipes] == [4, 4]  # both are there
    assert "8 samples in 2 partitions, 320 kB, " in repr(grown)
    assert "<td>320 kB</td>" in grown._repr_html_()


def test_bytes_that_nobody_knows_are_not_told():
    parts = SampleSet.from_delayed([dask.delayed({"x": np.arange(3)})], lengths=[3])
    assert repr(parts) == "SampleSet(...; 3 samples in 1 partition)"
    assert "<td>not known</td>" in parts._repr_html_()


def test_a_table():
    html = SampleSet.from_arrays(x=np.arange(5.0), partitions=2)._repr_html_()
    for told in ("2 of 2 to 3 samples", "40 B", "in this process", "f64[]"):
        assert f"<td>{told}</td>" in html
    named = SampleSet.from_arrays(**{"<b>": np.arange(2)})._repr_html_()
    assert "&lt;b&gt;" in named
    assert "<b>" not in named


@pytest.mark.parametrize(("nbytes", "said"), [(12, "12 B"), (7.8e6, "7.8 MB"), (2e15, "2e+03 TB")])
def test_sizes(nbytes, said):
    assert size(nbytes) == said
