"""Settings of hypothesis, and PyTorch as an oracle where it is installed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings

# No deadline, since numba compiles inside the first example.
settings.register_profile("daskdl", deadline=None, max_examples=25)
settings.load_profile("daskdl")


@pytest.fixture(scope="session")
def torch() -> Any:
    """PyTorch, the extra `peers`; the test is skipped without it."""
    return pytest.importorskip("torch")
