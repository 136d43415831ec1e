"""PyTorch as an oracle where it is installed."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(scope="session")
def torch() -> Any:
    """PyTorch, the extra `peers`; the test is skipped without it."""
    return pytest.importorskip("torch")
