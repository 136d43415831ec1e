"""Files: read where they are used, named when they cannot be."""

from __future__ import annotations

import logging

import dask.bag as db
import fsspec
import numpy as np
import pytest

from daskdl.data import SampleSet
from daskdl.data.sources.files import takes_url
from daskdl.data.sources.records import Records, as_sample
from daskdl.data.sources.urls import expanded, opened
from daskdl.errors import DataError
from tests.daskdl.data.epochs import everything


@pytest.fixture
def folder(tmp_path):
    for i in range(7):
        (tmp_path / f"{i}.txt").write_text("bad" if i == 4 else str(i))
    return tmp_path


def number(file):
    return int(file.read())


def test_each_file_is_a_sample(folder):
    urls = [f"file://{folder}/{i}.txt" for i in (3, 0, 6)]
    samples = SampleSet.from_files(urls, number, y=[30, 0, 60], partitions=2)
    held = everything(samples)
    assert (held["x"].tolist(), held["y"].tolist()) == ([3, 0, 6], [30, 0, 60])
    assert samples.lengths == (1, 2)
    assert everything(samples.shuffle(1))["x"].sum() == 9


def test_a_function_may_want_the_url(folder):
    def named(file, url):
        return {"name": url.rsplit("/", 1)[1]}

    assert takes_url(named)
    assert not takes_url(number)
    held = SampleSet.from_files(str(folder), named).head(2)
    assert held["name"].tolist() == ["0.txt", "1.txt"]


def test_a_file_that_cannot_be_read_is_named(folder):
    with pytest.raises(DataError, match=r"4\.txt: expected a sample, .*ValueError: invalid"):
        everything(SampleSet.from_files(str(folder), number))
    samples = SampleSet.from_files(str(folder), number, on_error="skip", partitions=2)
    assert not samples.is_counted
    assert everything(samples)["x"].tolist() == [0, 1, 2, 3, 5, 6]
    (bad,) = samples.bad
    assert bad.startswith(f"{folder}/4.txt (ValueError")


def test_columns_beside_files_are_checked(folder):
    with pytest.raises(DataError, match=r"y with one entry for each of 7 files, found shape \(2,"):
        SampleSet.from_files(str(folder), number, y=np.zeros((2, 1)))


def test_what_urls_mean(tmp_path, monkeypatch):
    for name in ("b.txt", "a.txt", "c.csv"):
        (tmp_path / name).write_text(name)
    a, b = str(tmp_path / "a.txt"), str(tmp_path / "b.txt")
    assert expanded(tmp_path / "a.txt", {}) == [a]
    assert expanded(str(tmp_path), {}, ".txt") == [a, b]
    assert expanded(f"{tmp_path}/*.txt", {}) == [a, b]
    assert expanded([b, a], {}) == [b, a]
    monkeypatch.chdir(tmp_path)
    assert expanded("a.txt", {}) == [a]
    with opened(a, {}) as file:
        assert file.read() == b"a.txt"


def test_stores_that_are_not_local():
    system = fsspec.filesystem("memory")
    system.pipe({"/sets/a.txt": b"1", "/sets/b.txt": b"2"})
    assert expanded("memory://sets/*.txt", {}) == ["memory:///sets/a.txt", "memory:///sets/b.txt"]
    with opened("memory:///sets/b.txt", {}) as file:
        assert file.read() == b"2"


def test_none_is_an_error(tmp_path):
    with pytest.raises(DataError, match=r"nothing\*: expected files, found none"):
        expanded(f"{tmp_path}/nothing*", {})
    with pytest.raises(DataError, match="expected URLs of files, found none"):
        expanded([], {})


def half(i):
    if i == 3:
        raise OSError("truncated")
    return np.zeros((2, 2 + (i == 5))), i


def test_what_a_record_may_be():
    assert as_sample({"a": 1}) == {"a": 1}
    assert as_sample((1, 2)) == {"x": 1, "y": 2}
    assert as_sample(3) == {"x": 3}


def test_a_bad_record_is_named():
    with pytest.raises(DataError, match=r"row 3: .*OSError: truncated\); on_error='skip' leaves"):
        Records(half, name="row")(range(5))
    with pytest.raises(DataError, match=r"record 2: .*expected x of 2 axes \(2,\), .* \(3,\)"):
        Records(half)([0, 1, 5])


def test_bad_records_are_left_out_and_told(caplog):
    bag = db.from_sequence(range(8), npartitions=2)
    samples = SampleSet.from_bag(bag, half, on_error="skip")
    with caplog.at_level(logging.WARNING, "daskdl"):
        assert len(samples) == 6
    (said,) = (record.getMessage() for record in caplog.records)
    assert said.startswith("2 of 8 records left out: bag 0, element 3 (OSError: truncated); bag 1")
    first, second = samples.bad
    assert first == "bag 0, element 3 (OSError: truncated)"
    assert second.startswith("bag 1, element 1 (expected x of 2 axes (2,)")
    test, train = samples.shuffle().split((0.5, 0.5))
    assert sorted([*test.head(9)["y"], *train.head(9)["y"]]) == [0, 1, 2, 4, 6, 7]
    assert set(test.bad) == {first, second}


def test_a_partition_of_bad_records_alone_is_empty():
    samples = SampleSet.from_bag(db.from_sequence([3, 3, 1], npartitions=3), half, on_error="skip")
    assert samples.lengths == (0, 0, 1)
    assert samples.repartition(3).head()["y"].tolist() == [1]
    with pytest.raises(
        DataError, match="expected at least one sample, found none after 1 were left out"
    ):
        len(SampleSet.from_bag(db.from_sequence([3]), half, on_error="skip"))
