from __future__ import annotations

import time

import numpy as np
import pytest

from daskdl.nn import MSELoss
from daskdl.scaling import waiting as module
from daskdl.scaling.waiting import FORWARD, Waiting, ones, waiting
from daskdl.scaling.workloads import workload


class Clock:
    """One that only goes on while somebody sleeps, or says so."""

    def __init__(self) -> None:
        self.now, self.slept = 0.0, list[float]()

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    result = Clock()
    monkeypatch.setattr(time, "sleep", result.sleep)
    monkeypatch.setattr(time, "perf_counter", lambda: result.now)
    return result


def test_it_waits_forward_and_backward_for_each_sample(clock: Clock) -> None:
    model = Waiting(6, 0.5)
    x, y = ones(np.random.default_rng(0), 3)
    loss = MSELoss()(model(x), y)
    loss.backward()
    assert clock.slept == pytest.approx([FORWARD * 1.5, (1 - FORWARD) * 1.5])
    # Weights of zero, of which four are used: d mean (w x - 1)^2 / dw = -2 / 4.
    np.testing.assert_allclose(model.flat_grad, [-0.5, -0.5, -0.5, -0.5, 0, 0])


@pytest.mark.parametrize("takes", [0.2, 5.0])
def test_what_it_takes_to_make_the_gradient_is_part_of_the_time(
    takes: float, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def clear(vector: np.ndarray) -> None:
        vector[:] = 0
        clock.now += takes

    monkeypatch.setattr(module, "clear", clear)
    x, y = ones(np.random.default_rng(0), 3)
    MSELoss()(Waiting(6, 0.5)(x), y).backward()
    assert clock.slept[1] == pytest.approx(max(0, (1 - FORWARD) * 1.5 - takes))


def test_a_batch_of_a_workload_takes_as_long_as_is_asked_for(clock: Clock) -> None:
    found = waiting(workload("text"), 3.0, 1000)
    model, loss, _ = found.build()
    x, y = found.draw(np.random.default_rng(0), workload("text").batch)
    loss(model(x), y).backward()
    assert sum(clock.slept) == pytest.approx(3.0)
    assert model.flat.size == 1000
