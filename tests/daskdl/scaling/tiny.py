"""A workload of one small layer, and runs with made-up times."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl.nn import Linear, MSELoss
from daskdl.optim import SGD
from daskdl.scaling.measure import PARTS, Run
from daskdl.scaling.workloads import Workload


def build() -> tuple[Any, Any, Any]:
    return Linear(3, 2, seed=0), MSELoss(), SGD(0.1)


def draw(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    x = rng.random((n, 3), np.float32)
    return x, x[:, :2]


TINY = Workload("tiny", 4, build, draw)


def run(workers: int, batch: int, seconds: float, busy: float | None = None) -> Run:
    """Return a run whose parts are of different lengths."""
    shares = np.arange(1, len(PARTS) + 1) / np.arange(1, len(PARTS) + 1).sum()
    parts = dict(zip(PARTS, (seconds * shares).tolist(), strict=True))
    return Run(workers, batch, 10, seconds, parts, busy)
