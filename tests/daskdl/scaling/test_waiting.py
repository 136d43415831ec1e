from __future__ import annotations

import time

import numpy as np
import pytest

from daskdl.nn import MSELoss
from daskdl.scaling.waiting import FORWARD, Waiting, ones, waiting
from daskdl.scaling.workloads import workload


def test_it_waits_forward_and_backward_for_each_sample(monkeypatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    model = Waiting(6, 0.5)
    x, y = ones(np.random.default_rng(0), 3)
    loss = MSELoss()(model(x), y)
    loss.backward()
    assert waited == pytest.approx([FORWARD * 1.5, (1 - FORWARD) * 1.5])
    # Weights of zero, of which four are used: d mean (w x - 1)^2 / dw = -2 / 4.
    np.testing.assert_allclose(model.flat_grad, [-0.5, -0.5, -0.5, -0.5, 0, 0])


def test_a_batch_of_a_workload_takes_as_long_as_is_asked_for(monkeypatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    found = waiting(workload("text"), 3.0, 1000)
    model, loss, _ = found.build()
    x, y = found.draw(np.random.default_rng(0), workload("text").batch)
    loss(model(x), y).backward()
    assert sum(waited) == pytest.approx(3.0)
    assert model.flat.size == 1000
