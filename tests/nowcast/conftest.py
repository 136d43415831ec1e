"""Fixtures of the tests of nowcast: names of real radar files."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def polar(radar_dir: Path) -> Path:
    """Folder with single polar files."""
    return radar_dir / "polar"


@pytest.fixture(scope="session")
def helchteren(radar_dir: Path) -> list[Path]:
    """Eight volumes of reflectivity, five minutes apart."""
    return sorted((radar_dir / "polar_sequence").glob("*.dbzh.*"))
