"""Parquet as others write it: folders that name columns, lists of lists, decimals, gaps, damage."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import dataset, parquet

from daskdl.data import Ragged, SampleSet
from daskdl.errors import DataError, ShapeError
from tests.daskdl.data.epochs import everything


def write(path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table(columns), path)
    return path


def test_folders_name_columns_as_pyarrow_has_them(tmp_path):
    kinds = ["a b", "c=d/e", "7"]
    rows = pa.table({"x": np.arange(6.0), "year": [2023, 2024] * 3, "kind": kinds * 2})
    layout = dataset.partitioning(rows.select(["year", "kind"]).schema, flavor="hive")
    dataset.write_dataset(rows, tmp_path, format="parquet", partitioning=layout)
    samples = SampleSet.from_parquet(tmp_path, x=["x", "year"], kind="kind")
    expected = parquet.read_table(tmp_path).to_pandas()
    columns = everything(samples)
    np.testing.assert_array_equal(columns["x"], expected[["x", "year"]].astype(float))
    assert columns["kind"].tolist() == expected["kind"].tolist()
    alone = everything(SampleSet.from_parquet(tmp_path, y="year"))["y"]
    assert alone.dtype == np.int64
    assert sorted(alone.tolist()) == [2023] * 3 + [2024] * 3


def test_a_column_of_the_file_counts_and_a_missing_number_is_nan(tmp_path):
    write(tmp_path / "x=1" / "y=5" / "a.parquet", x=[7.0])
    write(tmp_path / "x=1" / "y=__HIVE_DEFAULT_PARTITION__" / "a.parquet", x=[8.0])
    columns = everything(SampleSet.from_parquet(tmp_path, x="x", y="y"))
    np.testing.assert_array_equal(columns["x"], [7, 8])
    np.testing.assert_array_equal(columns["y"], [5, np.nan])
    with pytest.raises(DataError, match=r"found none called \['z'\]; there are \['x', 'y'\]"):
        SampleSet.from_parquet(tmp_path, x="y", y="z")


def test_files_that_a_writer_has_not_finished_are_left_out(tmp_path):
    write(tmp_path / "part-0.parquet", x=[1])
    for name in ("_temporary/0/part-1.parquet", ".part-2.parquet", "_tmp.parquet"):
        write(tmp_path / name, x=[99])
    assert everything(SampleSet.from_parquet(tmp_path, x="x"))["x"].tolist() == [1]


@pytest.mark.parametrize("log", ["_delta_log/0.json", "metadata/v1.metadata.json", ".hoodie/a"])
def test_a_table_format_may_have_deleted_rows(tmp_path, log):
    write(tmp_path / "data" / "part-0.parquet", x=[1])
    (tmp_path / log).parent.mkdir()
    (tmp_path / log).write_text("{}")
    with pytest.raises(DataError, match=rf"a table of Delta, .* \({log}\).*; give the files"):
        SampleSet.from_parquet(tmp_path, x="x")
    file = tmp_path / "data" / "part-0.parquet"
    assert len(SampleSet.from_parquet([file], x="x")) == 1


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([Decimal("1.5"), Decimal("2.25")], [1.5, 2.25]),
        ([Decimal("1.5"), None], [1.5, np.nan]),
        ([True, None, False], [1, np.nan, 0]),
    ],
)
def test_decimals_and_gaps_are_numbers(tmp_path, values, expected):
    x = everything(SampleSet.from_parquet(write(tmp_path / "a.parquet", x=values), x="x"))["x"]
    assert x.dtype == np.float64
    np.testing.assert_array_equal(x, expected)
    frame = pd.DataFrame({"x": pd.Series(values, dtype=object)})
    np.testing.assert_array_equal(everything(SampleSet.from_dataframe(frame, x="x"))["x"], expected)


def test_lists_of_lists_are_arrays_or_sequences(tmp_path):
    values = [[[1.0, 2.0]], [], [[3.0, 4.0], [5.0, 6.0]]]
    x = everything(SampleSet.from_parquet(write(tmp_path / "a.parquet", x=values), x="x"))["x"]
    assert isinstance(x, Ragged)
    assert [part.tolist() for part in x] == values
    with_gaps = pd.DataFrame({"x": [[1, None], [Decimal("2.5")], []]})
    x = everything(SampleSet.from_dataframe(with_gaps, x="x"))["x"]
    np.testing.assert_array_equal(x.values, [1, np.nan, 2.5])
    images = np.arange(24.0).reshape(2, 3, 2, 2)
    file = write(tmp_path / "b.parquet", x=images.tolist())
    np.testing.assert_array_equal(everything(SampleSet.from_parquet(file, x="x"))["x"], images)


def test_a_named_index_of_pandas_is_a_column(tmp_path):
    pd.DataFrame({"x": [1, 2]}, pd.Index([5, 6], name="id")).to_parquet(tmp_path / "a.parquet")
    columns = everything(SampleSet.from_parquet(tmp_path / "a.parquet", x="x", id="id"))
    assert columns["id"].tolist() == [5, 6]


def test_a_damaged_page_is_named(tmp_path):
    path, x = tmp_path / "a.parquet", np.random.default_rng(0).normal(size=1000)
    parquet.write_table(pa.table({"x": x}), path, write_page_checksum=True, compression=None)
    data = bytearray(path.read_bytes())
    data[4000:4008] = bytes(8)
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"a\.parquet, row group 0: expected whole pages, found .*"):
        everything(SampleSet.from_parquet(path, x="x"))


def test_what_cannot_be_one_column_is_named(tmp_path):
    uneven = write(tmp_path / "a.parquet", x=[[1, 2], None], y=[0, 1])
    with pytest.raises(ShapeError, match=r"a\.parquet, row group 0, column 'x': .*; fill missing"):
        everything(SampleSet.from_parquet(uneven, x="x"))
    lists = pd.DataFrame({"a": [[1], [2, 3]], "b": [np.ones(2)] * 2, "c": [0, 1]})
    for columns in (["a", "a"], ["a", "c"], ["b", "c"]):
        with pytest.raises(DataError, match=r"of one kind and shape, .* lists a name each"):
            SampleSet.from_dataframe(lists, x=columns)


@pytest.mark.parametrize("other", [["7", "8"], np.array([7, 8], "m8[s]")])
@pytest.mark.parametrize("way", ["head", "join", "stream"])
def test_numbers_in_one_file_and_other_values_in_the_next_are_refused(tmp_path, other, way):
    write(tmp_path / "a.parquet", x=[1, 2])
    write(tmp_path / "b.parquet", x=other)
    samples = SampleSet.from_parquet(tmp_path, x="x")
    use = {"head": lambda: samples.head(4), "join": lambda: everything(samples.repartition(1))}
    with pytest.raises(DataError, match=r"values of one kind in all partitions, found .* and "):
        use.get(way, lambda: everything(samples.stream(1)))()
