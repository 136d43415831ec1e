"""The learning rates of PyTorch's schedules, and what all of ours are checked for."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

from daskdl.optim.schedules import Schedule


def torchs(torch: Any, rate: float, make: Callable[[Any], Any], count: int = 40) -> list[float]:
    """Return the learning rates of so many iterations of a schedule of PyTorch."""
    method = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=rate)
    schedule, rates = make(method), []
    for _ in range(count):
        rates.append(method.param_groups[0]["lr"])
        method.step()
        schedule.step()
    return rates


def check(schedule: Schedule, expected: list[float]) -> None:
    """Assert that a schedule has these rates, from iteration 0, and travels between processes."""
    found = [schedule(i) for i in range(len(expected))]
    assert all(type(rate) is float for rate in found)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-13)
    twin = pickle.loads(pickle.dumps(schedule))
    assert twin == schedule
    assert repr(twin) == repr(schedule)
    assert hash(twin) == hash(schedule)
