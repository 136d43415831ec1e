"""The examples in the docstrings of both packages print the results written below them."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import numpy as np
import pytest

from daskdl import nn, ops
from daskdl.errors import MissingExtraError

ROOT = Path(__file__).resolve().parents[1]
FILES = [
    path.relative_to(ROOT)
    for package in ("daskdl", "nowcast")
    for path in sorted((ROOT / package).rglob("*.py"))
    if re.search(r">>> |_OfOperation\b|of_one_array\(", path.read_text(encoding="utf-8"))
]
#: Modules whose examples take more than a third of a second, most of it for pictures and kernels.
SLOW = {
    "daskdl/models/inception.py",
    "daskdl/models/multibox.py",
    "daskdl/models/ssd.py",
    "daskdl/nn/losses/crossentropy.py",
    "daskdl/ops/pointwise/special.py",
    "daskdl/sklearn/classifier.py",
    "daskdl/sklearn/regressor.py",
    "nowcast/plot/forecast.py",
    "nowcast/plot/rain.py",
    "nowcast/verification/verify.py",
}
MARKED = [pytest.param(f, marks=pytest.mark.slow) if str(f) in SLOW else f for f in FILES]


def test_slow_modules_are_there():
    assert {str(file) for file in FILES} >= SLOW


def names(module):
    """Return the names that an example sees: np, nn, ops, and those of its package and module."""
    package = importlib.import_module(module.__name__.rpartition(".")[0])
    return {"np": np, "nn": nn, "ops": ops, **vars(package), **vars(module)}


@pytest.mark.parametrize("file", MARKED, ids=str)
def test_examples(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Layers that examples define are registered under their module: ci.parity would list them.
    monkeypatch.setattr(nn.Module, "registry", {**nn.Module.registry})
    name = ".".join(file.with_suffix("").parts).removesuffix(".__init__")
    try:
        module = importlib.import_module(name)
    except MissingExtraError as error:
        pytest.skip(str(error))
    finder = doctest.DocTestFinder(exclude_empty=True)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    for test in finder.find(module, module.__name__, globs=names(module)):
        assert not runner.run(test, clear_globs=False).failed, f"{test.name}: see above"
