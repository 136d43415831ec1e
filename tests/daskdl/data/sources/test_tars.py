"""Tars: samples of files of one name, bad ones as on_error says, and archives that break off."""

from __future__ import annotations

import io
import tarfile

import numpy as np
import pytest

from daskdl.data import SampleSet
from daskdl.errors import DataError, SettingsError
from tests.daskdl.data.epochs import everything


def write(path, files):
    with tarfile.open(path, "w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


def pictures(first, count):
    """Return the files of samples: bytes that tell their number, and its square as class."""
    files = {}
    for i in range(first, first + count):
        files[f"./train/{i:03}.cls"] = f"{i * i}\n".encode()
        files[f"./train/{i:03}.v2.PNG"] = b"pixels " + bytes([i] * (1 + i))
    return files


@pytest.fixture
def folder(tmp_path):
    for shard in range(3):
        write(tmp_path / f"train-{shard}.tar", pictures(4 * shard, 4 + shard))
    (tmp_path / "train.txt").write_text("no archive")
    return tmp_path


ENDINGS = {"x": "jpg;v2.png", "y": "cls"}


def test_each_archive_is_a_partition(folder):
    samples = SampleSet.from_tar(str(folder), **ENDINGS)
    assert samples.lengths == (4, 5, 6)
    held = everything(samples)
    numbers = [*range(4), *range(4, 9), *range(8, 14)]
    assert held["y"].tolist() == [i * i for i in numbers]
    assert [bytes(x) for x in held["x"]] == [b"pixels " + bytes([i] * (1 + i)) for i in numbers]
    assert samples.nbytes == sum(len(x) for x in held["x"]) + sum(len(f"{y}\n") for y in held["y"])


def test_a_part_reads_what_it_needs_alone(folder):
    whole = SampleSet.from_tar(folder / "train-1.tar", **ENDINGS).recipes[0]
    part = whole.part(1, 5).part(2, 4)
    assert part.names == ("./train/007", "./train/008")
    assert part.load().arrays["y"].tolist() == [49, 64]
    streamed = SampleSet.from_tar(folder / "train-1.tar", **ENDINGS).stream(held=64)
    assert sorted(everything(streamed)["y"].tolist()) == [16, 25, 36, 49, 64]


def test_values_are_decoded_by_their_endings(tmp_path):
    array = io.BytesIO()
    np.save(array, np.eye(2, dtype=np.float32))
    url = write(tmp_path / "a.tar", {"0.npy": array.getvalue(), "0.txt": b" \xc3\xa4 b\n"})
    samples = SampleSet.from_tar(url, x="npy", said="txt", decode={"y": len}, y="txt;cls")
    held = everything(samples)
    assert held["x"].tolist() == [[[1, 0], [0, 1]]]
    assert (held["said"].tolist(), held["y"].tolist()) == (["ä b"], [6])


def test_the_first_ending_goes_before_others(tmp_path):
    files = {"0.png": b"png", "0.jpg": b"jpg", "1.jpg": b"jpg", "1.png": b"png", "2.png": b"png"}
    held = everything(SampleSet.from_tar(write(tmp_path / "a.tar", files), x="jpg;png"))
    assert [bytes(x) for x in held["x"]] == [b"jpg", b"jpg", b"png"]


def test_bad_samples_are_named_or_left_out(folder):
    bad = {"a.v2.png": b"1", "b.cls": b"7", "b.v2.png": b"2", "c.v2.png": b"3", "c.cls": b"cat"}
    url = write(folder / "bad.tar", bad | {"._d.cls": b"hidden"})
    samples = SampleSet.from_tar(url, **ENDINGS)
    with pytest.raises(DataError, match=r"bad\.tar, a: .*expected a file for y, \*\.cls"):
        everything(samples)
    samples = SampleSet.from_tar(url, on_error="skip", **ENDINGS)
    assert everything(samples)["y"].tolist() == [7]
    missing, no_number = samples.bad
    assert "bad.tar, a (expected a file for y" in missing
    assert "bad.tar, c (ValueError: invalid literal" in no_number


def test_archives_that_break_off(folder):
    url = folder / "train-2.tar"
    whole = url.read_bytes()
    with tarfile.open(url) as archive:
        at = archive.getmember("./train/012.v2.PNG")
    for cut, left in ((at.offset, 4), (at.offset + 100, 4), (at.offset_data + 3, 4)):
        url.write_bytes(whole[:cut])
        with pytest.raises(DataError, match=r"train-2\.tar: expected a whole tar archive, found"):
            SampleSet.from_tar(str(folder), **ENDINGS)
        samples = SampleSet.from_tar(url, on_error="skip", **ENDINGS)
        assert len(samples) == left, cut
        (sample, archive) = samples.bad
        assert "train-2.tar, ./train/012 (expected " in sample
        assert "train-2.tar: expected a whole tar archive" in archive
    url.write_bytes(b"no archive at all" * 100)
    urls = [*sorted(folder.glob("*.tar")), folder / "missing.tar"]
    samples = SampleSet.from_tar(urls, on_error="skip", **ENDINGS)
    assert samples.lengths == (4, 5, 0, 0)
    assert "missing.tar: expected a whole tar archive" in samples.bad[-1]


def test_fields_are_checked(folder):
    with pytest.raises(SettingsError, match="expected the endings of files"):
        SampleSet.from_tar(str(folder))
    with pytest.raises(SettingsError, match=r"among \['y'\], found \['x'\]"):
        SampleSet.from_tar(str(folder), y="cls", decode={"x": len})


def test_workers_list_and_read_them(folder, client_of):
    with client_of(1).as_current():
        samples = SampleSet.from_tar(f"file://{folder}/train-*.tar", **ENDINGS).persist()
        assert samples.lengths == (4, 5, 6)
        assert samples.filter(lambda batch: batch["y"] > 9).lengths == (0, 5, 6)
