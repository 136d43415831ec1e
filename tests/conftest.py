"""What all tests share: the folder of real radar data."""

from __future__ import annotations

from pathlib import Path

import pytest

RADAR_DIR = Path(__file__).resolve().parents[2] / "shared" / "radar"


@pytest.fixture(scope="session")
def radar_dir() -> Path:
    """Folder of published radar files beside the checkout; the test is skipped without it."""
    if not RADAR_DIR.is_dir():
        pytest.skip(f"no radar data at {RADAR_DIR}")
    return RADAR_DIR
