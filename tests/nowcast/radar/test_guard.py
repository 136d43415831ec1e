"""An exception is explained: a damaged file in one sentence, or a bug with its place."""

from __future__ import annotations

import pickle

import h5py
import numpy as np
import pytest

from daskdl.errors import DataError, MissingExtraError, SettingsError
from nowcast.radar import guard
from nowcast.radar.guard import ReaderError, explained, foreign_file, guarded
from nowcast.radar.header import Site


def explanation(raising) -> Exception:
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
        lambda: np.linalg.inv("text"),  # a wrong type inside a library
        lambda: Site(500.0, 0.0),
    ],
)
def test_errors_of_libraries_and_values_mean_a_damaged_file(raising):
    error = explanation(raising)
    assert type(error) is DataError
    assert str(error).startswith("a.h5: damaged")


def test_a_bug_of_ours_is_named_with_its_place(monkeypatch):
    # The lambda raises by itself, not inside a library, as a line of the package would.
    monkeypatch.setattr(guard, "OURS", __name__.partition(".")[0])
    error = explanation(lambda: len(3))
    assert type(error) is ReaderError
    assert "TypeError: object of type 'int' has no len()" in str(error)
    assert f"in {__name__}, line " in str(error)
    assert "please report it" in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    # Bad values of a file are no bug of ours.
    assert type(explanation(lambda: int("x"))) is DataError


@pytest.mark.parametrize(
    ("error", "message"),
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
def test_messages_stay_and_name_the_file(error, message):
    with pytest.raises(type(error)) as raised, guarded("a.h5", "HDF5"):
        raise error
    assert str(raised.value) == message


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
