"""A folder of a small encoder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.daskdl.text.folders import write_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "model")
