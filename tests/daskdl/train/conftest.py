"""Fixtures of the tests of training."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dask
import pytest

from tests.daskdl.train.runs import Run, digest, fit, problem


@pytest.fixture
def short_groups() -> Iterator[None]:
    """Groups of one iteration."""
    with dask.config.set({"daskdl.group-time": "1 us"}):
        yield


@pytest.fixture(scope="session")
def undisturbed() -> str:
    """Digest of the weights of a fit in this process; a validation does not change them."""
    return digest(fit(problem(), client=False))


@pytest.fixture(scope="session")
def uninterrupted() -> dict[str, Any]:
    """Return the weights and history of a run that nothing interrupts."""
    run = Run().fit()
    assert run.best.best_epoch == 2
    assert len(run.trainer.history.epochs) == 5
    return run.outcome()
