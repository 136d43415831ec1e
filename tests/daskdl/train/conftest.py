"""Fixtures of the tests of training."""

from __future__ import annotations

from collections.abc import Iterator

import dask
import pytest


@pytest.fixture
def short_groups() -> Iterator[None]:
    """Groups of one iteration."""
    with dask.config.set({"daskdl.group-time": "1 us"}):
        yield
