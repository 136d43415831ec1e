"""Damage of a file becomes one sentence that names it; other errors stay themselves."""

from __future__ import annotations

import pytest

from daskdl.errors import ModelFileError, ShapeError
from daskdl.interop.guard import DAMAGE, reading


@pytest.mark.parametrize("kind", [*DAMAGE, KeyError, ZeroDivisionError])
def test_damage_names_the_file(kind):
    told = pytest.raises(ModelFileError, match=r"^net\.pb: damaged or not valid ONNX \(")
    with told, reading("net.pb", "ONNX"):
        raise kind("what")


def test_sentences_of_ours_are_kept_once():
    with pytest.raises(ModelFileError, match=r"^net\.pb: Linear: too wide$"), reading("net.pb"):
        raise ShapeError("Linear: too wide")
    with pytest.raises(ModelFileError, match=r"^said already$"), reading("net.pb"):
        raise ModelFileError("said already")


def test_others_pass():
    with pytest.raises(MemoryError), reading("net.pb"):
        raise MemoryError
