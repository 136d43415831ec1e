"""An exception is the file's fault, in one sentence, or this program's, with the place."""

from __future__ import annotations

import pickle

import h5py
import numpy as np
import pytest

from daskdl.errors import DataError, MissingExtraError, SettingsError
from nowcast.radar import guard
from nowcast.radar.guard import ReaderError, explained, foreign_file, guarded
from nowcast.radar.header import Site


def told(raising) -> Exception:
    try:
        raising()
    except Exception as error:
        return explained(error, "a.h5", "ODIM_H5")
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize(
    "raising",
    [
        lambda: np.frombuffer(b"abc", "f8"),
        lambda: {}["what"],
        lambda: b"\xff".decode("utf-8"),
        lambda: h5py.File("/dev/null", "r"),
        lambda: np.linalg.inv("text"),  # a type that does not fit, inside a library
        lambda: Site(500.0, 0.0),
    ],
)
def test_libraries_and_values_tell_of_a_damaged_file(raising):
    error = told(raising)
    assert type(error) is DataError
    assert str(error).startswith("a.h5: damaged")


def test_a_mistake_of_ours_says_so_and_where(monkeypatch):
    # As a line of the package would, this one raises itself and not inside a library.
    monkeypatch.setattr(guard, "OURS", __name__.partition(".")[0])
    error = told(lambda: len(3))
    assert type(error) is ReaderError
    assert "TypeError: object of type 'int' has no len()" in str(error)
    assert f"in {__name__}, line " in str(error)
    assert "please report it" in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    # Values that a file gave are no mistake of ours.
    assert type(told(lambda: int("x"))) is DataError


@pytest.mark.parametrize(
    ("error", "found"),
    [
        (DataError("a.h5: broken; mend it"), "a.h5: broken; mend it"),
        (
            DataError("expected one number"),
            "a.h5: expected one number; put a whole copy in its place, or leave it out",
        ),
        (MissingExtraError("needs eccodes"), "needs eccodes"),
        (ReaderError("a.h5: ours"), "a.h5: ours"),
    ],
)
def test_what_is_a_sentence_stays_one_and_names_the_file(error, found):
    with pytest.raises(type(error)) as raised, guarded("a.h5", "HDF5"):
        raise error
    assert str(raised.value) == found


def test_ctrl_c_passes():
    with pytest.raises(KeyboardInterrupt), guarded("a.h5"):
        raise KeyboardInterrupt


def test_a_missing_file_is_named(tmp_path):
    expected = pytest.raises(DataError, match=r"gone\.h5: damaged.*FileNotFound")
    with expected, foreign_file(tmp_path / "gone.h5", "HDF5"):
        pass


def test_settings_errors_of_files_are_the_files_fault():
    expected = pytest.raises(DataError, match=r"a\.h5: damaged HDF5 file .site: expected degrees")
    with expected, guarded("a.h5", "HDF5"):
        raise SettingsError("site: expected degrees, found 500")
