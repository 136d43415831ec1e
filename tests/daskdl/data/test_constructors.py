"""Constructors: the same samples, whatever they are made of."""

from __future__ import annotations

import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import xarray as xr
import zarr
from dask.delayed import delayed

from daskdl.data import Ragged, SampleSet
from daskdl.errors import DataError, SettingsError
from tests.daskdl.data.epochs import everything

N = 11
IDS = np.arange(N)


def record(i):
    return {"x": int(i), "y": np.full(2, i, np.float32)}


def of_delayed(tmp_path):
    parts = [delayed(dict)(x=IDS[a:b], y=IDS[a:b, None] * [1, 1]) for a, b in [(0, 4), (4, N)]]
    return SampleSet.from_delayed(parts)


def of_files(tmp_path):
    for i in IDS:
        (tmp_path / f"{i:02d}.npy").write_bytes(b"")
        np.save(tmp_path / f"{i:02d}.npy", np.full(2, i, np.float32))
    return SampleSet.from_files(f"{tmp_path}/*.npy", lambda f: {"y": np.load(f)}, x=IDS)


def of_parquet(tmp_path):
    frame = pd.DataFrame({"i": IDS, "a": IDS * 1.0, "b": IDS * 1.0})
    frame.to_parquet(tmp_path / "0.parquet", row_group_size=4)
    return SampleSet.from_parquet(tmp_path, x="i", y=["a", "b"])


def dataset():
    both = (("time", "side"), np.repeat(IDS[:, None], 2, 1).astype(float))
    return xr.Dataset({"i": ("time", IDS), "both": both})


def of_store(tmp_path):
    dataset().to_zarr(tmp_path / "s.zarr", zarr_format=3, consolidated=False)
    return str(tmp_path / "s.zarr")


SOURCES = {
    "arrays": lambda _: SampleSet.from_arrays(x=IDS, y=np.repeat(IDS[:, None], 2, 1), partitions=3),
    "dask arrays": lambda _: SampleSet.from_arrays(
        x=da.from_array(IDS, chunks=4), y=np.repeat(IDS[:, None], 2, 1)
    ),
    "xarray's arrays": lambda _: SampleSet.from_arrays(
        x=dataset()["i"], y=dataset().chunk(time=4)["both"]
    ),
    "unknown chunks": lambda _: SampleSet.from_arrays(
        x=(a := da.from_array(IDS, chunks=4))[a >= 0],
        y=da.from_array(np.repeat(IDS[:, None], 2, 1), chunks=(4, 1))[a >= 0],
    ),
    "zarr arrays": lambda p: SampleSet.from_arrays(
        x=(g := zarr.open_group(of_store(p), mode="r"))["i"], y=g["both"], partitions=2
    ),
    "bag": lambda _: SampleSet.from_bag(db.from_sequence(IDS.tolist(), npartitions=3), record),
    "pandas": lambda _: SampleSet.from_dataframe(
        pd.DataFrame({"i": IDS, "a": IDS}), x="i", y=["a", "a"]
    ),
    "dask data frame": lambda _: SampleSet.from_dataframe(
        dd.from_pandas(pd.DataFrame({"i": IDS, "a": IDS}), npartitions=3), x="i", y=["a", "a"]
    ),
    "delayed": of_delayed,
    "files": of_files,
    "parquet": of_parquet,
    "xarray": lambda _: SampleSet.from_xarray(dataset(), dim="time", x="i", y="both"),
    "xarray on dask": lambda _: SampleSet.from_xarray(
        dataset().chunk(time=4, side=1), dim="time", x="i", y="both"
    ),
    "xarray store": lambda p: SampleSet.from_xarray(
        of_store(p), dim="time", x="i", y="both", partitions=2
    ),
    "zarr": lambda p: SampleSet.from_zarr(of_store(p), x="i", y="both", partitions=3),
}


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
def test_every_source_gives_the_same_samples(source, tmp_path):
    samples = SOURCES[source](tmp_path)
    assert samples.head(2)["x"].tolist() == [0, 1]
    assert len(samples) == sum(samples.lengths) == N
    columns = everything(samples)
    assert columns["x"].tolist() == IDS.tolist()
    np.testing.assert_array_equal(columns["y"], np.repeat(IDS[:, None], 2, 1))
    # Filtered, shuffled and repartitioned samples are the same ones.
    again = everything(samples.filter(lambda batch: batch["x"] % 3 > 0).shuffle(1).repartition(2))
    assert sorted(again["x"].tolist()) == [i for i in range(N) if i % 3]
    np.testing.assert_array_equal(again["y"][:, 1], again["x"])


def test_each_partition_of_dask_becomes_one():
    made = SampleSet.from_arrays(x=da.from_array(IDS, chunks=4))
    assert (made.lengths, made.nbytes) == ((4, 4, 3), 8 * N)
    assert SampleSet.from_arrays(x=da.from_array(IDS, chunks=4), partitions=2).lengths == (5, 6)
    bag = SampleSet.from_bag(db.from_sequence(IDS.tolist(), npartitions=3), record)
    assert not bag.is_counted
    assert bag.partitions == 3


def test_ragged_arrays_are_cut_as_others():
    words = Ragged.of([[1], [2, 3], [], [4]])
    samples = SampleSet.from_arrays(x=words, y=np.arange(4), partitions=2)
    assert [s.tolist() for s in everything(samples)["x"]] == [[1], [2, 3], [], [4]]
    with pytest.raises(DataError, match=r"found {'x': 4, 'y': 3}"):
        SampleSet.from_arrays(x=words, y=np.arange(3))


def test_masked_elements_are_refused():
    masked = np.ma.masked_greater(np.arange(4.0), 2)
    with pytest.raises(DataError, match="from_arrays, x: expected no masked elements, found 1"):
        SampleSet.from_arrays(x=masked)
    made = SampleSet.from_arrays(x=np.ma.masked_greater(np.arange(4.0), 5))
    assert everything(made)["x"].tolist() == [0, 1, 2, 3]


def test_a_data_frame_is_no_array():
    frame = dd.from_pandas(pd.DataFrame({"i": IDS}), npartitions=2)
    with pytest.raises(DataError, match=r"expected arrays, found x as DataFrame; there are from_"):
        SampleSet.from_arrays(x=frame)


def test_a_source_without_names_is_refused(tmp_path):
    with pytest.raises(SettingsError, match=r"from_zarr: expected the arrays to use"):
        SampleSet.from_zarr(tmp_path)
    with pytest.raises(SettingsError, match="expected the columns to use"):
        SampleSet.from_dataframe(pd.DataFrame({"a": [1]}))
    with pytest.raises(SettingsError, match="on_error: expected 'raise' or 'skip', found 'no'"):
        SampleSet.from_bag(db.from_sequence([1]), on_error="no")
