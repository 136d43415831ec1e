"""Errors carry exit codes, inherit the builtin that fits, and travel between processes."""

from __future__ import annotations

import pickle

import pytest

from daskdl import errors

ALL = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, errors.DaskdlError)
]


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_error_survives_pickle_with_its_sentence_and_code(kind):
    error = kind("store 'a.zarr': expected 3 scans, found 2; copy it again")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert str(copy) == str(error)
    assert copy.exit_code == error.exit_code


@pytest.mark.parametrize(
    ("kind", "builtin", "code"),
    [
        (errors.ShapeError, ValueError, 3),
        (errors.SettingsError, ValueError, 2),
        (errors.DataError, ValueError, 3),
        (errors.ModelFileError, errors.DataError, 3),
        (errors.TrainingError, RuntimeError, 3),
        (errors.PredictionError, RuntimeError, 3),
        (errors.ClusterError, RuntimeError, 4),
        (errors.CheckpointError, RuntimeError, 5),
        (errors.MissingExtraError, ImportError, 2),
    ],
)
def test_error_is_the_builtin_that_fits_and_ends_with_its_code(kind, builtin, code):
    assert issubclass(kind, builtin)
    assert kind.exit_code == code


def test_every_error_is_listed_above():
    assert {kind.exit_code for kind in ALL} == {1, 2, 3, 4, 5}
    assert len(ALL) == 10
