"""Attributes as one text or one number."""

from __future__ import annotations

import h5py
import numpy as np
import pytest

from daskdl.errors import DataError
from nowcast.radar.attributes import count, number, text, text_of


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
def test_what_is_no_number_is_told(file, value, sentence):
    if value is not None:
        file.attrs["key"] = value
    with pytest.raises(DataError, match=sentence):
        number(file, "key")


@pytest.mark.parametrize("value", [0, 6, 2.5])
def test_a_count_has_bounds(file, value):
    file.attrs["key"] = value
    with pytest.raises(DataError, match=f"a number from 1 to 5, found {value}"):
        count(file, "key", 5)
