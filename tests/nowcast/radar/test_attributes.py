"""Attributes as one text or one number, and the content of packed files."""

from __future__ import annotations

import bz2
import gzip
import os

import h5py
import numpy as np
import pytest

from daskdl.errors import DataError
from nowcast.radar import plainfile
from nowcast.radar.attributes import count, number, text, text_of
from nowcast.radar.formats import recognise
from nowcast.radar.plainfile import plain_file, read_bytes
from nowcast.radar.reader import read_sweeps


@pytest.mark.parametrize(
    "stored", ["DBZH", b"DBZH\x00", np.bytes_(b"DBZH "), np.array([b"DBZH"]), ["DBZH"]]
)
def test_a_text_is_one_text_however_stored(stored):
    assert text_of(stored) == "DBZH"


def test_nothing_is_an_empty_text():
    assert text_of(np.array([])) == text_of(b"") == ""


@pytest.fixture
def file(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        yield file


def test_a_number_is_one_number_however_stored(file):
    file.attrs["one"] = np.array([3.5])
    file.attrs["digits"] = np.bytes_("7")
    file.attrs["text"] = np.array([b"DBZH\x00"])
    assert number(file, "one") == 3.5
    assert text(file, "text") == "DBZH"
    assert count(file, "digits", 10) == 7
    assert number(file, "none", 4.0) == 4.0


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (np.array([1.0, 2.0]), "one number, found array"),
        (np.nan, "one number, found"),
        (np.bytes_("DBZH"), "one number, found"),
        (None, "expected an attribute 'key' of /, found none"),
    ],
)
def test_other_values_are_named(file, value, sentence):
    if value is not None:
        file.attrs["key"] = value
    with pytest.raises(DataError, match=sentence):
        number(file, "key")


@pytest.mark.parametrize("value", [0, 6, 2.5])
def test_a_count_has_bounds(file, value):
    file.attrs["key"] = value
    with pytest.raises(DataError, match=f"a number from 1 to 5, found {value}"):
        count(file, "key", 5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["2013051000000600dBZ.vol", "T_PAGZ35_C_ENMI_20170421090837.hdf", "SUR210819000227.RAWKPJV"],
)
def test_no_file_stays_open(polar, name):
    path = polar / name
    read_sweeps([path], recognise(path))
    names = []
    for n in os.listdir("/proc/self/fd"):
        try:
            names.append(os.readlink(f"/proc/self/fd/{n}"))
        except OSError:
            continue
    assert not any(path.name in name for name in names)


TEXT = bytes(range(256)) * 400


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress])
def test_packed_files_have_the_content_of_plain_files(tmp_path, pack):
    path = tmp_path / "file.x"
    path.write_bytes(pack(TEXT))
    assert read_bytes(path) == TEXT
    assert read_bytes(path, 10) == TEXT[:10]
    with plain_file(path) as unpacked:
        assert unpacked.read_bytes() == TEXT
        assert (unpacked == path) == (pack is bytes)
    assert unpacked.exists() == (pack is bytes)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_a_file_that_breaks_off_is_named(tmp_path, pack):
    path = tmp_path / "file.x"
    path.write_bytes(pack(TEXT)[:-9])
    with pytest.raises(DataError, match=r"file\.x: cannot be"), plain_file(path):
        pass
    with pytest.raises(DataError, match=r"file\.x: cannot be read"):
        read_bytes(path)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress])
def test_too_large_content_is_refused_before_it_is_written(tmp_path, monkeypatch, pack):
    monkeypatch.setattr(plainfile, "MOST_BYTES", 3 << 20)
    path = tmp_path / "bomb.gz"
    for size, fits in (((3 << 20), True), ((3 << 20) + 1, False)):
        path.write_bytes(pack(bytes(size)))
        if fits:
            assert len(read_bytes(path)) == size
            continue
        with pytest.raises(DataError, match=r"bomb\.gz: expected .* at most 3 MB unpacked"):
            read_bytes(path)
        with pytest.raises(DataError, match="at most 3 MB"), plain_file(path):
            pass
        assert len(read_bytes(path, 100)) == 100
