"""Fixtures of all tests: settings of hypothesis, and the folder of real radar data."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# The same draws in every run, so that a change is judged by what it changed. To look for new ones:
# HYPOTHESIS_PROFILE=search pytest ... No deadline, since numba compiles inside the first example.
settings.register_profile("same", deadline=None, max_examples=16, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=25)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

RADAR_DIR = Path(__file__).resolve().parents[2] / "shared" / "radar"


@pytest.fixture(scope="session")
def radar_dir() -> Path:
    """Folder of published radar files beside the checkout; the test is skipped without it."""
    if not RADAR_DIR.is_dir():
        pytest.skip(f"no radar data at {RADAR_DIR}")
    return RADAR_DIR


@pytest.fixture(autouse=True)
def _dask_is_left_as_it_was() -> Iterator[None]:
    """A default scheduler that a test leaves behind would fail whatever test comes next."""
    config = sys.modules.get("dask.config")
    before = None if config is None else config.get("scheduler", None)
    yield
    config = sys.modules.get("dask.config")
    assert config is None or config.get("scheduler", None) == before
