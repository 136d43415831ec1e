from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import fsspec
import numpy as np
import pandas as pd
import pyarrow.parquet as parquet
import pytest
import xarray as xr
import zarr

from daskdl.data import SampleSet
from daskdl.data.results import write_results
from daskdl.errors import DataError, SettingsError

X = np.arange(7 * 3, dtype=np.float32).reshape(7, 3)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def frames(written):
    return pd.concat([pd.read_parquet(part) for part in written.parts], ignore_index=True)


def samples(partitions=3):
    return SampleSet.from_arrays(x=X, y=np.arange(7), partitions=partitions)


def test_each_partition_of_samples_is_a_file(tmp_path):
    doubled = samples().map(lambda batch: {**batch, "x": 2 * batch["x"]})
    written = write_results(doubled, tmp_path / "out")
    assert names(tmp_path / "out") == [
        "_manifest.json",
        *(f"part-0000{i}.parquet" for i in range(3)),
    ]
    assert (written.written, written.samples) == ((0, 1, 2), 7)
    frame = frames(written)
    np.testing.assert_array_equal(np.stack(frame["x"]), 2 * X)
    np.testing.assert_array_equal(frame["y"], np.arange(7))
    again = SampleSet.from_parquet(str(tmp_path / "out"), x="x", y="y")
    assert again.lengths == doubled.lengths
    np.testing.assert_array_equal(again.head(7)["x"], 2 * X)


def test_dask_collections(tmp_path):
    array = da.from_array(X, chunks=(4, 2)) + 1
    np.testing.assert_array_equal(
        np.stack(frames(write_results(array, tmp_path / "array"))["prediction"]), X + 1
    )
    bag = db.from_sequence([{"id": i, "text": f"text {i}"} for i in range(5)], npartitions=2)
    frame = frames(write_results(bag, tmp_path / "bag"))
    assert frame.to_dict("list") == {"id": [*range(5)], "text": [f"text {i}" for i in range(5)]}
    numbers = db.from_sequence(range(5), npartitions=2)
    assert list(frames(write_results(numbers, tmp_path / "n"))["prediction"]) == [*range(5)]
    table = pd.DataFrame({0: [0.5, 1.5, 2.5]}, index=pd.Index([7, 8, 9], name="id"))
    lazy = dd.from_pandas(table, npartitions=2)
    frame = frames(write_results(lazy, tmp_path / "frame"))
    assert frame.to_dict("list") == {"id": [7, 8, 9], "0": [0.5, 1.5, 2.5]}
    frame = frames(write_results(lazy[0], tmp_path / "series"))
    assert frame.shape == (3, 2)


def test_zarr_groups(tmp_path):
    images = np.arange(48, dtype=np.uint8).reshape(4, 2, 2, 3)
    written = write_results(
        SampleSet.from_arrays(x=images, partitions=2), tmp_path / "out", format="zarr"
    )
    assert names(tmp_path / "out") == ["_manifest.json", "part-00000", "part-00001"]
    parts = [xr.open_zarr(part, consolidated=False)["x"] for part in written.parts]
    assert parts[0].dims == ("sample", "x_1", "x_2", "x_3")
    np.testing.assert_array_equal(np.concatenate(parts), images)
    texts = SampleSet.from_arrays(x=np.array(["a"], np.dtypes.StringDType()))
    with pytest.raises(DataError, match="expected 'x' to be numbers, found StringDType"):
        write_results(texts, tmp_path / "texts", format="zarr")
    assert names(tmp_path / "texts") == ["_manifest.json"]


@pytest.mark.parametrize("format", ["parquet", "zarr"])
def test_sequences_of_different_lengths(tmp_path, format):
    bag = db.from_sequence([{"x": np.arange(n)} for n in (2, 0, 3)], npartitions=1)
    (part,) = write_results(SampleSet.from_bag(bag), tmp_path / "out", format=format).parts
    if format == "zarr":
        group = zarr.open_group(part, mode="r")
        assert group["x"][:].tolist() == [0, 1, 0, 1, 2]
        assert group["x_offsets"][:].tolist() == [0, 2, 2, 5]
    else:
        assert parquet.read_table(part)["x"].to_pylist() == [[0, 1], [], [0, 1, 2]]


def test_images_and_bytes_in_parquet(tmp_path):
    images = np.arange(24, dtype=np.uint8).reshape(2, 2, 2, 3)
    raw = np.array([b"a", b"bc"], object)
    (part,) = write_results(SampleSet.from_arrays(x=images, raw=raw), tmp_path / "out").parts
    table = parquet.read_table(part)
    np.testing.assert_array_equal(table["x"].combine_chunks().to_numpy_ndarray(), images)
    assert table["raw"].to_pylist() == [b"a", b"bc"]


@pytest.fixture
def one_thread():
    """One partition after the other, so that none is under way when another has failed."""
    with ThreadPoolExecutor(1) as pool, dask.config.set(scheduler="threads", pool=pool):
        yield


@pytest.mark.slow
@pytest.mark.parametrize("format", ["parquet", "zarr"])
@pytest.mark.parametrize("kind", ["samples", "array", "bag"])
def test_a_second_run_goes_on_where_the_first_stopped(tmp_path, format, kind, one_thread):
    seen, out = tmp_path / "seen", tmp_path / "out"
    seen.mkdir()
    broken = [True]

    def half(x):
        (seen / str(int(x.sum()))).touch()
        if broken[0] and x.max() > 14:
            raise OSError("no disk")
        return x / 2

    def collection():
        if kind == "samples":
            return samples().map(lambda batch: {"prediction": half(batch["x"])})
        if kind == "array":
            return da.from_array(X, chunks=((2, 3, 2), 3)).map_blocks(half, meta=X[:0])
        return db.from_sequence(X, npartitions=3).map(half)

    with pytest.raises(OSError, match="no disk"):
        write_results(collection(), out, format=format)
    (out / ".part-00002.parquet.abc").touch()  # what a killed worker leaves
    done = [name for name in names(out) if name.startswith("part-")]
    assert len(done) < 3
    for path in seen.iterdir():
        path.unlink()
    broken[0] = False
    written = write_results(collection(), out, format=format)
    assert len(written.written) == 3 - len(done)
    computed = sum(int(path.name) for path in seen.iterdir())
    assert computed == (
        X.sum()
        if not done
        else X.sum() - sum(2 * value_of(out / name, format).sum() for name in done)
    )
    assert len(names(out)) == 4
    values = np.concatenate([value_of(part, format) for part in written.parts])
    np.testing.assert_array_equal(values, X / 2)
    assert write_results(collection(), out, format=format).written == ()


def value_of(part, format):
    if format == "zarr":
        return zarr.open_group(part, mode="r")["prediction"][:]
    return np.stack(pd.read_parquet(part)["prediction"])


def test_refuses_another_run(tmp_path):
    write_results(samples(), tmp_path / "out", version="1")
    for more, other in [(2, "1"), (3, "2")]:
        with pytest.raises(SettingsError, match=r"found 3 partitions as parquet, .* give another"):
            write_results(samples(more), tmp_path / "out", version=other)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "todo.txt").touch()
    with pytest.raises(SettingsError, match=r"expected .*notes to be empty"):
        write_results(samples(), tmp_path / "notes")
    assert json.loads((tmp_path / "out" / "_manifest.json").read_text())["version"] == "1"


def test_any_store_that_fsspec_knows():
    url = "memory://results-of-a-test/out"
    written = write_results(samples(), url)
    assert len(written.written) == 3
    assert write_results(samples(), url).written == ()
    fsspec.filesystem("memory").rm("/results-of-a-test/out/part-00001.parquet")
    assert write_results(samples(), url).written == (1,)
    np.testing.assert_array_equal(np.stack(frames(written)["x"]), X)
    with pytest.raises(SettingsError, match="expected a local folder for zarr"):
        write_results(samples(), url, format="zarr")


def test_refuses_other_collections_and_formats(tmp_path):
    with pytest.raises(SettingsError, match=r"expected a SampleSet, a dask Bag, .* found ndarray"):
        write_results(X, tmp_path)
    with pytest.raises(SettingsError, match="expected parquet or zarr, found 'csv'"):
        write_results(samples(), tmp_path, format="csv")
    empty = db.from_sequence([1, 2], npartitions=2).filter(lambda n: n > 1)
    with pytest.raises(DataError, match="partition 0: expected samples, found none"):
        write_results(empty, tmp_path / "out")
