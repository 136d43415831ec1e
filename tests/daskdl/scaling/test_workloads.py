"""Workloads: networks, a model that waits, and samples that are drawn."""

from __future__ import annotations

import pickle
import time

import numpy as np
import pytest

from daskdl.errors import SettingsError
from daskdl.nn import MSELoss
from daskdl.scaling import workloads as module
from daskdl.scaling.workloads import FORWARD, WORKLOADS, Waiting, ones, synthetic, waiting, workload


@pytest.mark.parametrize("name", ["lenet", "text"])
def test_a_model_takes_what_is_drawn_for_it(name) -> None:
    work = workload(name)
    model, loss, method = work.build()
    x, y = work.draw(np.random.default_rng(0), 2)
    assert np.isfinite(float(loss(model.eval()(x), y)))
    assert method.init(4) is not None


@pytest.mark.parametrize("work", WORKLOADS.values(), ids=WORKLOADS)
def test_samples_pickle_are_as_many_as_asked_for_and_the_same_again(work) -> None:
    draw = pickle.loads(pickle.dumps(work.draw))
    x, y = draw(np.random.default_rng(1), 3)
    assert len(x) == len(y) == 3
    for one, other in zip((x, y), work.draw(np.random.default_rng(1), 3), strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_unknown_name_is_answered_with_the_workloads() -> None:
    with pytest.raises(SettingsError, match=r"expected one of lenet, .*resnet152, found 'alexnet'"):
        workload("alexnet")


def numbered(rng, n):
    x = rng.random((n, 3))
    return x, np.arange(n)


def test_a_few_samples_repeat_up_to_any_length() -> None:
    samples = synthetic(numbered, [100, 101], held=5)
    assert samples.lengths == (100, 101)
    first, second = (recipe.load() for recipe in samples.recipes)
    np.testing.assert_array_equal(first.take(np.array([0, 4, 5, 99]))["y"], [0, 4, 0, 4])
    assert first.nbytes == samples.recipes[0].nbytes == 5 * (3 * 8 + 8)
    assert (first.take(np.arange(5))["x"] != second.take(np.arange(5))["x"]).all()


def test_a_part_has_the_samples_of_the_whole() -> None:
    (recipe,) = synthetic(numbered, [20], held=7).recipes
    part = recipe.part(4, 20).part(5, 9)
    assert len(part) == 4
    whole, some = recipe.load().take(np.arange(9, 13)), part.load().take(np.arange(4))
    np.testing.assert_array_equal(some["x"], whole["x"])
    np.testing.assert_array_equal(synthetic(numbered, [20], held=7).head(2)["y"], [0, 1])


class Clock:
    """A clock that moves only by sleeping, or by its ``now``."""

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
    # Six weights of zero, four of them used: d mean (w x - 1)^2 / dw = -2 / 4.
    np.testing.assert_allclose(model.flat_grad, [-0.5, -0.5, -0.5, -0.5, 0, 0])


@pytest.mark.parametrize("takes", [0.2, 5.0])
def test_the_time_to_make_the_gradient_is_part_of_the_wait(
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
    work = waiting(workload("text"), 3.0, 1000)
    model, loss, _ = work.build()
    x, y = work.draw(np.random.default_rng(0), workload("text").batch)
    loss(model(x), y).backward()
    assert sum(clock.slept) == pytest.approx(3.0)
    assert model.flat.size == 1000
