"""The package: its version, what importing it loads, and the errors that a user meets."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import daskdl
from ci import docs
from daskdl import errors


def test_subpackages_load_when_used():
    assert daskdl.nn.Linear(2, 1).flat.size == 3


def test_dir_lists_names_that_are_there():
    assert {*daskdl.__all__, "nn", "metrics", "predict"} <= set(dir(daskdl))
    for name in dir(daskdl):
        assert getattr(daskdl, name) is not None
    assert daskdl.Tensor is daskdl.tensor.Tensor


@pytest.mark.slow
def test_what_the_pages_call_is_there_after_import_daskdl():
    root = Path(__file__).parents[2]
    pages = [root / "README.md", *docs.pages()]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    paths = sorted(set(re.findall(r"\bdaskdl(?:\.[a-z_]+)+\.\w+(?=\()", text)))
    assert len(paths) > 5
    # Each in a process of its own: a module that another path loads would be there by chance.
    program = """
import os, sys, daskdl
import distributed, dask.array, numba, xarray  # once, and not in each child
from functools import reduce
for path in sys.argv[1:]:
    if not os.fork():
        reduce(getattr, path.split(".")[1:], daskdl)
        os._exit(0)
    if os.wait()[1]:
        sys.exit(path)
"""
    run = subprocess.run(
        [sys.executable, "-c", program, *paths], capture_output=True, text=True, check=False
    )
    assert not run.returncode, run.stderr[-300:]


def test_unknown_names_are_refused_as_of_any_module():
    with pytest.raises(AttributeError, match="module 'daskdl' has no attribute 'Tensr'"):
        _ = daskdl.Tensr


def test_version_is_that_of_the_distribution():
    assert daskdl.__version__ == version("daskdl")


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
