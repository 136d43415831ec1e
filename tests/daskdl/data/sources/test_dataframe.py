"""Tables: columns of data frames and row groups of Parquet files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from daskdl.data import Ragged, SampleSet
from daskdl.data.sources.dataframe import Columns
from daskdl.errors import DataError, SettingsError
from tests.daskdl.data.epochs import everything


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
def test_columns_become_arrays_of_what_they_hold(source, tmp_path):
    fields = {"i": "i", "n": "n", "name": "name", "words": "words", "both": ["i", "n"]}
    if source == "frame":
        samples = SampleSet.from_dataframe(frame(), **fields)
    else:
        frame().to_parquet(tmp_path / "a.parquet", row_group_size=2)
        samples = SampleSet.from_parquet(tmp_path / "a.parquet", **fields)
        assert samples.lengths == (2, 2, 1)
    held = everything(samples)
    assert held["i"].dtype == np.int64
    np.testing.assert_array_equal(held["n"], [1, np.nan, 3, 4, 5])
    assert held["name"].tolist() == list("abcde")
    assert isinstance(held["words"], Ragged)
    assert [s.tolist() for s in held["words"]] == [[1], [2, 3], [], [4], [5]]
    assert held["both"].shape == (5, 2)


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
    held = everything(some)
    assert held["y"].tolist() == [0, 1, 2, 4]
    np.testing.assert_array_equal(held["x"][:, 0, 1], [0, 1, 2, 4])
    assert len(some.bad) == 1
    assert list(held) == ["x", "y"]


def test_parts_of_row_groups_and_bytes_that_the_file_tells(tmp_path):
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
    with pytest.raises(DataError, match=r"of one kind, found {'a': 'float64', 'b': 'category'}"):
        SampleSet.from_dataframe(words, x=["a", "b"])
    with pytest.raises(SettingsError, match=r"decode: expected .* \['x'\], found \['y'\]"):
        Columns({"x": "i"}, {"y": decode})
