"""``import daskdl`` hands out its public names, quickly."""

from __future__ import annotations

from importlib.metadata import version

import pytest

import daskdl


def test_every_name_is_there_and_comes_from_below():
    for name in daskdl.__all__:
        assert getattr(daskdl, name) is not None
    assert daskdl.Tensor is daskdl.tensor.Tensor


def test_subpackages_load_when_used():
    assert daskdl.nn.Linear(2, 1).flat.size == 3


def test_names_are_listed_for_those_who_look_and_for_type_checkers():
    assert {*daskdl.__all__, "nn", "metrics", "predict"} <= set(dir(daskdl))
    for name in dir(daskdl):
        assert getattr(daskdl, name) is not None


def test_unknown_names_are_refused_as_of_any_module():
    with pytest.raises(AttributeError, match="module 'daskdl' has no attribute 'Tensr'"):
        _ = daskdl.Tensr


def test_version_is_that_of_the_distribution():
    assert daskdl.__version__ == version("daskdl")
