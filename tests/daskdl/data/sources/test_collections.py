"""Samples of Dask's collections: their tasks, chunks and columns, masked and bad values."""

from __future__ import annotations

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.delayed import delayed
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from daskdl.data import Arrays, Ragged, Recipe, SampleSet
from daskdl.data.sources.collections import tasks_by_partition
from daskdl.data.sources.dataframe import Columns
from daskdl.errors import DataError, SettingsError
from daskdl.nn import CrossEntropyLoss, Linear
from daskdl.optim import SGD
from daskdl.train import Trainer
from tests.daskdl.data.epochs import everything


def test_a_piece_has_the_tasks_it_needs_and_no_others():
    array = da.ones((6, 2), chunks=(2, 2)).cumsum(axis=0)
    partitions = tasks_by_partition(array)
    assert len(partitions) == 3
    sizes = [len(tasks) for tasks, _ in partitions]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[2]  # the sum of the last one needs all before


def test_arrays_of_other_chunks_are_cut_alike():
    x, y = da.arange(10, chunks=3), da.arange(10, chunks=(4, 6)) * 2
    samples = SampleSet.from_arrays(x=x, y=y, z=np.arange(10))
    assert samples.lengths == (3, 3, 3, 1)
    columns = everything(samples)
    np.testing.assert_array_equal(columns["y"], 2 * columns["x"])
    np.testing.assert_array_equal(columns["z"], columns["x"])


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


class Masked(Recipe):
    """Samples that a user's recipe loads, some of them masked."""

    def __init__(self, x):
        self.x = x

    def __len__(self):
        return len(self.x)

    def load(self):
        return Arrays({"x": self.x})


@given(
    x=arrays(np.float32, (4, 2), elements=st.floats(-9, 9, width=32)),
    mask=arrays(bool, (4, 2)),
)
def test_masked_elements_are_nan_in_every_way(x, mask):
    """NaN from a recipe, a function, Dask and a predicted scene, never the masked number."""
    masked, wanted = np.ma.masked_array(x, mask), np.where(mask, np.nan, x)
    bare = SampleSet.from_arrays(x=x)
    layer = Linear(2, 2, bias=False)
    layer.weight.data[:] = np.eye(2)
    for samples in (
        SampleSet([Masked(masked)]),
        bare.map(lambda batch: {"x": np.ma.masked_array(batch["x"], mask[: len(batch["x"])])}),
        SampleSet.from_arrays(x=da.from_array(masked, chunks=(4, 2))),
    ):
        np.testing.assert_array_equal(everything(samples)["x"], wanted)
    if not mask.any():
        return
    rows = ~mask.any(1)
    for predicted in (layer.predict(masked), layer.predict(masked[None], tile={0: 1, 1: 2})[0]):
        np.testing.assert_array_equal(predicted[rows], x[rows])
        assert np.isnan(predicted[~rows]).all()


def test_masked_whole_numbers_are_refused():
    whole = da.ma.masked_greater(da.from_array(np.arange(12).reshape(6, 2), chunks=(3, 2)), 8)
    with pytest.raises(DataError, match=r"no masked elements of int64, .* found 3"):
        everything(SampleSet.from_arrays(x=whole))


def frame():
    return pd.DataFrame(
        {
            "i": np.arange(5),
            "n": pd.array([1, None, 3, 4, 5], dtype="Int64"),
            "name": list("abcde"),
            "words": [[1], [2, 3], [], [4], [5]],
            "image": [bytes([i]) * 4 for i in range(5)],
        }
    )


def decode(value):
    if value[0] == 3:
        raise ValueError("not an image")
    return np.frombuffer(value, np.uint8).reshape(2, 2)


@pytest.mark.parametrize("source", ["frame", "parquet"])
def test_columns_become_arrays_by_their_types(source, tmp_path):
    fields = {"i": "i", "n": "n", "name": "name", "words": "words", "both": ["i", "n"]}
    if source == "frame":
        samples = SampleSet.from_dataframe(frame(), **fields)
    else:
        frame().to_parquet(tmp_path / "a.parquet", row_group_size=2)
        samples = SampleSet.from_parquet(tmp_path / "a.parquet", **fields)
        assert samples.lengths == (2, 2, 1)
    columns = everything(samples)
    assert columns["i"].dtype == np.int64
    np.testing.assert_array_equal(columns["n"], [1, np.nan, 3, 4, 5])
    assert columns["name"].tolist() == list("abcde")
    assert isinstance(columns["words"], Ragged)
    assert [s.tolist() for s in columns["words"]] == [[1], [2, 3], [], [4], [5]]
    assert columns["both"].shape == (5, 2)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pd.array([True, None, False], dtype="boolean"), [1.0, np.nan, 0.0]),
        (pd.arrays.SparseArray([0, 5, 0]), [0, 5, 0]),
        (np.array([1, 2, 3], ">f4"), [1, 2, 3]),
    ],
)
def test_unusual_columns_of_numbers_are_joined_with_others(column, expected):
    values = pd.DataFrame({"a": column, "b": [7, 8, 9]})
    x = everything(SampleSet.from_dataframe(values, x=["a", "b"]))["x"]
    assert x.dtype.kind in "if"
    np.testing.assert_array_equal(x, np.stack([expected, [7, 8, 9]], 1))


def test_time_deltas_are_no_numbers_and_names_are_unique():
    values = pd.DataFrame({"a": pd.to_timedelta([1, 2], unit="s"), "b": [7, 8]})
    with pytest.raises(
        DataError, match=r"of one kind and shape, found {'a': 'timedelta64\[.s\]', 'b': 'int64'}"
    ):
        SampleSet.from_dataframe(values, x=["a", "b"])
    values.columns = ["b", "b"]
    with pytest.raises(DataError, match="expected one column called 'b', found several"):
        SampleSet.from_dataframe(values, x="b")


def test_arrays_that_dask_turns_into_texts_are_named():
    values = pd.DataFrame({"a": [np.ones(2)] * 4, "y": [0, 1, 0, 1]})
    samples = SampleSet.from_dataframe(dd.from_pandas(values, 2), x="a", y="y")
    trainer = Trainer(Linear(2, 2), CrossEntropyLoss(), SGD(0.1))
    with pytest.raises(
        DataError, match=r"found texts such as '\[1\. 1\.\]'; Dask makes texts of lists"
    ):
        trainer.fit(samples, epochs=1, client=False, progress=False)


@pytest.mark.parametrize("source", ["frame", "parquet"])
def test_bytes_are_decoded_and_bad_ones_named(source, tmp_path):
    def samples(on_error):
        options = {"x": "image", "y": "i", "decode": {"x": decode}, "on_error": on_error}
        if source == "frame":
            return SampleSet.from_dataframe(frame(), **options)
        frame().to_parquet(tmp_path / "a.parquet", row_group_size=2)
        return SampleSet.from_parquet(f"{tmp_path}/*.parquet", **options)

    where = "DataFrame, row 3" if source == "frame" else r"a\.parquet, row group 1, row 1"
    with pytest.raises(DataError, match=where + r": .*ValueError: not an image"):
        everything(samples("raise"))
    some = samples("skip")
    columns = everything(some)
    assert columns["y"].tolist() == [0, 1, 2, 4]
    np.testing.assert_array_equal(columns["x"][:, 0, 1], [0, 1, 2, 4])
    assert len(some.bad) == 1
    assert list(columns) == ["x", "y"]


def test_parts_of_row_groups_and_bytes_by_the_metadata(tmp_path):
    frame().to_parquet(tmp_path / "a.parquet", row_group_size=4)
    samples = SampleSet.from_parquet(tmp_path / "a.parquet", x="i")
    assert samples.nbytes >= 40
    assert everything(samples.repartition(3))["x"].tolist() == [0, 1, 2, 3, 4]
    assert samples.recipes[0].part(1, 3).load().arrays["x"].tolist() == [1, 2]


def test_mistakes_show_at_once(tmp_path):
    frame().to_parquet(tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes(b"no")
    with pytest.raises(DataError, match=r"a\.parquet: .* found none called \['z'\]; there are"):
        SampleSet.from_parquet(tmp_path / "a.parquet", x="z")
    with pytest.raises(DataError, match=r"b\.parquet: expected a Parquet file"):
        SampleSet.from_parquet(tmp_path / "b.parquet", x="i")
    with pytest.raises(DataError, match=r"found none called \['z'\]"):
        SampleSet.from_dataframe(frame(), x=["i", "z"])
    words = pd.DataFrame({"a": [0.5], "b": pd.Categorical(["x"])})
    with pytest.raises(
        DataError, match=r"of one kind and shape, found {'a': 'float64', 'b': 'category'}"
    ):
        SampleSet.from_dataframe(words, x=["a", "b"])
    with pytest.raises(SettingsError, match=r"decode: expected .* \['x'\], found \['y'\]"):
        Columns({"x": "i"}, {"y": decode})
