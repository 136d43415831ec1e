"""Files and tars: read where they are used, and named when they cannot be read."""

from __future__ import annotations

import io
import logging
import tarfile

import dask.bag as db
import fsspec
import numpy as np
import pytest

from daskdl.data import SampleSet
from daskdl.data.sources.files import takes_url
from daskdl.data.sources.records import Records
from daskdl.data.sources.urls import expanded, opened
from daskdl.errors import DataError, SettingsError
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
    columns = everything(samples)
    assert (columns["x"].tolist(), columns["y"].tolist()) == ([3, 0, 6], [30, 0, 60])
    assert samples.lengths == (1, 2)
    assert everything(samples.shuffle(1))["x"].sum() == 9


def test_a_function_may_want_the_url(folder):
    def named(file, url):
        return {"name": url.rsplit("/", 1)[1]}

    assert takes_url(named)
    assert not takes_url(number)
    batch = SampleSet.from_files(str(folder), named).head(2)
    assert batch["name"].tolist() == ["0.txt", "1.txt"]


def test_a_file_that_cannot_be_read_is_named(folder):
    with pytest.raises(DataError, match=r"4\.txt: expected a sample, .*ValueError: invalid"):
        everything(SampleSet.from_files(str(folder), number))
    samples = SampleSet.from_files(str(folder), number, on_error="skip", partitions=2)
    assert not samples.is_counted
    assert everything(samples)["x"].tolist() == [0, 1, 2, 3, 5, 6]
    (bad,) = samples.bad
    assert bad.startswith(f"{folder}/4.txt (ValueError")


def test_columns_given_with_files_are_checked(folder):
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


def test_no_files_are_an_error(tmp_path):
    with pytest.raises(DataError, match=r"nothing\*: expected files, found none"):
        expanded(f"{tmp_path}/nothing*", {})
    with pytest.raises(DataError, match="expected URLs of files, found none"):
        expanded([], {})


def half(i):
    if i == 3:
        raise OSError("truncated")
    return np.zeros((2, 2 + (i == 5))), i


def test_a_bad_record_is_named():
    with pytest.raises(DataError, match=r"row 3: .*OSError: truncated\); on_error='skip' leaves"):
        Records(half, name="row")(range(5))
    with pytest.raises(DataError, match=r"record 2: .*expected x of 2 axes \(2,\), .* \(3,\)"):
        Records(half)([0, 1, 5])


def test_bad_records_are_left_out_and_logged(caplog):
    bag = db.from_sequence(range(8), npartitions=2)
    samples = SampleSet.from_bag(bag, half, on_error="skip")
    with caplog.at_level(logging.WARNING, "daskdl"):
        assert len(samples) == 6
    (log,) = (record.getMessage() for record in caplog.records)
    assert log.startswith("2 of 8 records left out: bag 0, element 3 (OSError: truncated); bag 1")
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


def write(path, files):
    with tarfile.open(path, "w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


def pictures(first, count):
    """Return the files of numbered samples: bytes made of the number, and its square as class."""
    files = {}
    for i in range(first, first + count):
        files[f"./train/{i:03}.cls"] = f"{i * i}\n".encode()
        files[f"./train/{i:03}.v2.PNG"] = b"pixels " + bytes([i] * (1 + i))
    return files


@pytest.fixture
def folder_of_tars(tmp_path):
    for shard in range(3):
        write(tmp_path / f"train-{shard}.tar", pictures(4 * shard, 4 + shard))
    (tmp_path / "train.txt").write_text("no archive")
    return tmp_path


ENDINGS = {"x": "jpg;v2.png", "y": "cls"}


def test_each_archive_is_a_partition(folder_of_tars):
    samples = SampleSet.from_tar(str(folder_of_tars), **ENDINGS)
    assert samples.lengths == (4, 5, 6)
    read = everything(samples)
    numbers = [*range(4), *range(4, 9), *range(8, 14)]
    assert read["y"].tolist() == [i * i for i in numbers]
    assert [bytes(x) for x in read["x"]] == [b"pixels " + bytes([i] * (1 + i)) for i in numbers]
    assert samples.nbytes == sum(len(x) for x in read["x"]) + sum(len(f"{y}\n") for y in read["y"])


def test_a_part_reads_only_its_samples(folder_of_tars):
    whole = SampleSet.from_tar(folder_of_tars / "train-1.tar", **ENDINGS).recipes[0]
    part = whole.part(1, 5).part(2, 4)
    assert part.names == ("./train/007", "./train/008")
    assert part.load().arrays["y"].tolist() == [49, 64]
    streamed = SampleSet.from_tar(folder_of_tars / "train-1.tar", **ENDINGS).stream(held=64)
    assert sorted(everything(streamed)["y"].tolist()) == [16, 25, 36, 49, 64]


def test_values_are_decoded_by_their_endings(tmp_path):
    array = io.BytesIO()
    np.save(array, np.eye(2, dtype=np.float32))
    url = write(tmp_path / "a.tar", {"0.npy": array.getvalue(), "0.txt": b" \xc3\xa4 b\n"})
    samples = SampleSet.from_tar(url, x="npy", cls="txt", decode={"y": len}, y="txt;cls")
    read = everything(samples)
    assert read["x"].tolist() == [[[1, 0], [0, 1]]]
    assert (read["cls"].tolist(), read["y"].tolist()) == (["ä b"], [6])


def test_the_first_ending_goes_before_others(tmp_path):
    files = {"0.png": b"png", "0.jpg": b"jpg", "1.jpg": b"jpg", "1.png": b"png", "2.png": b"png"}
    read = everything(SampleSet.from_tar(write(tmp_path / "a.tar", files), x="jpg;png"))
    assert [bytes(x) for x in read["x"]] == [b"jpg", b"jpg", b"png"]


def test_bad_samples_are_named_or_left_out(folder_of_tars):
    bad = {"a.v2.png": b"1", "b.cls": b"7", "b.v2.png": b"2", "c.v2.png": b"3", "c.cls": b"cat"}
    url = write(folder_of_tars / "bad.tar", bad | {"._d.cls": b"hidden"})
    samples = SampleSet.from_tar(url, **ENDINGS)
    with pytest.raises(DataError, match=r"bad\.tar, a: .*expected a file for y, \*\.cls"):
        everything(samples)
    samples = SampleSet.from_tar(url, on_error="skip", **ENDINGS)
    assert everything(samples)["y"].tolist() == [7]
    missing, no_number = samples.bad
    assert "bad.tar, a (expected a file for y" in missing
    assert "bad.tar, c (ValueError: invalid literal" in no_number


def test_archives_that_break_off(folder_of_tars):
    url = folder_of_tars / "train-2.tar"
    whole = url.read_bytes()
    with tarfile.open(url) as archive:
        at = archive.getmember("./train/012.v2.PNG")
    for cut, remaining in ((at.offset, 4), (at.offset + 100, 4), (at.offset_data + 3, 4)):
        url.write_bytes(whole[:cut])
        with pytest.raises(DataError, match=r"train-2\.tar: expected a whole tar archive, found"):
            SampleSet.from_tar(str(folder_of_tars), **ENDINGS)
        samples = SampleSet.from_tar(url, on_error="skip", **ENDINGS)
        assert len(samples) == remaining, cut
        (sample, archive) = samples.bad
        assert "train-2.tar, ./train/012 (expected " in sample
        assert "train-2.tar: expected a whole tar archive" in archive
    url.write_bytes(b"no archive at all" * 100)
    urls = [*sorted(folder_of_tars.glob("*.tar")), folder_of_tars / "missing.tar"]
    samples = SampleSet.from_tar(urls, on_error="skip", **ENDINGS)
    assert samples.lengths == (4, 5, 0, 0)
    assert "missing.tar: expected a whole tar archive" in samples.bad[-1]


def test_a_name_that_comes_twice_is_two_samples(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for name, data in (("a.txt", b"one"), ("a.cls", b"1"), ("a.txt", b"two"), ("a.cls", b"2")):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    columns = everything(SampleSet.from_tar(tmp_path / "a.tar", x="txt", y="cls"))
    assert (columns["x"].tolist(), columns["y"].tolist()) == (["one", "two"], [1, 2])


def test_fields_are_checked(folder_of_tars):
    with pytest.raises(SettingsError, match="expected the endings of files"):
        SampleSet.from_tar(str(folder_of_tars))
    with pytest.raises(SettingsError, match=r"among \['y'\], found \['x'\]"):
        SampleSet.from_tar(str(folder_of_tars), y="cls", decode={"x": len})


def test_workers_list_and_read_them(folder_of_tars, client):
    with client.as_current():
        samples = SampleSet.from_tar(f"file://{folder_of_tars}/train-*.tar", **ENDINGS).persist()
        assert samples.lengths == (4, 5, 6)
        assert samples.filter(lambda batch: batch["y"] > 9).lengths == (0, 5, 6)


def test_a_missing_text_in_parquet_is_no_word(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pd.DataFrame({"text": ["a", None]}).to_parquet(tmp_path / "texts.parquet")
    samples = SampleSet.from_parquet(str(tmp_path / "texts.parquet"), x="text")
    assert not isinstance(samples.head(2)["x"][1], str)
