"""A schedule of one's own, and one that goes by a metric."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from daskdl.optim import SGD
from daskdl.optim.schedules import (
    Cosine,
    Exponential,
    InverseTime,
    MultiStep,
    Plateau,
    Polynomial,
    Schedule,
    Step,
    Warmup,
)
from daskdl.optim.schedules.schedule import whole


@dataclass(frozen=True)
class Root(Schedule):
    """One over the root of the iterations."""

    rate: float

    def __call__(self, iteration):
        return self.rate / (iteration + 1) ** 0.5


def test_it_needs_one_function():
    check(Root(1.0), [1.0, 0.5**0.5, (1 / 3) ** 0.5])
    assert Root(1.0).init() == {}
    assert Root(1.0).at(3, Root(1.0).observe({}, 2.0)) == 0.5
    assert Warmup(Root(1.0), 2)(5) == 0.5
    w = np.ones(3, np.float32)
    np.testing.assert_array_equal(SGD(Root(1.0)).update(w, w, {}, 3)[0], 0.5)


def test_whole_numbers_are_checked():
    whole(Step(0.1, 3), "every", 3)
    with pytest.raises(SettingsError, match=r"Step: expected every .* of at least 4"):
        whole(Step(0.1, 3), "every", 4)


@given(
    metrics=st.lists(st.sampled_from([-1.0, 0.5, 0.9, 0.99, 1.0, 1.01, 2.0]), max_size=30),
    factor=st.floats(0.1, 0.9),
    patience=st.integers(0, 3),
    threshold=st.sampled_from([0.0, 0.02, 0.2]),
    relative=st.booleans(),
    cooldown=st.integers(0, 3),
    lowest=st.sampled_from([0.0, 0.05]),
    higher=st.booleans(),
)
def test_agrees_with_pytorch(
    metrics, factor, patience, threshold, relative, cooldown, lowest, higher, torch
):
    method = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.3)
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(
        method,
        "max" if higher else "min",
        factor,
        patience,
        threshold,
        "rel" if relative else "abs",
        cooldown,
        lowest,
        eps=0,
    )
    ours = Plateau(0.3, factor, patience, threshold, relative, cooldown, lowest, higher)
    state = ours.init()
    for metric in metrics:
        theirs.step(metric)
        before = dict(state)
        after = ours.observe(state, metric)
        assert state == before
        state = after
        assert ours.at(3, state) == pytest.approx(method.param_groups[0]["lr"])


def test_before_it_saw_anything_it_has_its_first_rate():
    check(Plateau(0.3), [0.3] * 5)
    assert Plateau(0.3).at(7, Plateau(0.3).init()) == 0.3


def test_a_metric_that_is_not_a_number_is_no_better():
    schedule = Plateau(1.0, factor=0.5, patience=1)
    state = schedule.init()
    for _ in range(2):
        state = schedule.observe(state, float("nan"))
    assert schedule.at(0, state) == 0.5


def test_it_never_rises_to_its_lowest_rate():
    schedule = Plateau(0.1, patience=0, lowest=0.2)
    state = schedule.observe(schedule.observe(schedule.init(), 1.0), 1.0)
    assert schedule.at(0, state) == 0.1


def test_impossible_settings_are_refused():
    with pytest.raises(SettingsError, match=r"Plateau: expected 0 <= factor < 1, found 1\.5"):
        Plateau(0.1, factor=1.5)
    with pytest.raises(SettingsError, match="Plateau: expected patience to be a whole number"):
        Plateau(0.1, patience=-1)


@given(over=st.integers(1, 45), end=st.floats(0, 0.3))
def test_agrees_with_pytorch_of_curves(over, end, torch):
    def make(method):
        return torch.optim.lr_scheduler.CosineAnnealingLR(method, over, end)

    # PyTorch's goes up again.
    check(Cosine(0.3, over, end), torchs(torch, 0.3, make, count=over + 1))
    assert Cosine(0.3, over, end)(over + 7) == pytest.approx(end)


@given(over=st.integers(1, 15), end=st.floats(0, 0.3), stretch=st.integers(1, 3))
def test_restarts_are_pytorchs(over, end, stretch, torch):
    def make(method):
        kind = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts
        return kind(method, over, stretch, end)

    schedule = Cosine(0.3, over, end, restarts=True, stretch=stretch)
    check(schedule, torchs(torch, 0.3, make))
    assert end <= schedule(10**9 + 7) <= 0.3 + 1e-12


def test_impossible_settings_are_refused_of_curves():
    with pytest.raises(SettingsError, match="Cosine: expected restarts=True with stretch=2, found"):
        Cosine(0.1, 3, stretch=2)
    with pytest.raises(SettingsError, match="Cosine: expected over to be a whole number of at"):
        Cosine(0.1, 0)


@given(decay=st.floats(0, 3), over=st.integers(1, 9))
def test_agrees_with_pytorch_inversetime(decay, over, torch):
    def make(method):
        return torch.optim.lr_scheduler.LambdaLR(method, lambda i: 1 / (1 + decay * i / over))

    check(InverseTime(0.3, decay, over), torchs(torch, 0.3, make))


def test_impossible_settings_are_refused_inversetime():
    with pytest.raises(SettingsError, match="InverseTime: expected 0 <= decay < inf, found -2"):
        InverseTime(0.1, -2)
    with pytest.raises(SettingsError, match="InverseTime: expected over to be a whole number of"):
        InverseTime(0.1, 0.5, over=0)


@given(over=st.integers(1, 45), power=st.floats(0.2, 4))
def test_agrees_with_pytorch_polynomial(over, power, torch):
    def make(method):
        return torch.optim.lr_scheduler.PolynomialLR(method, over, power)

    check(Polynomial(0.3, over, power), torchs(torch, 0.3, make))


def test_it_falls_to_its_end_and_stays():
    schedule = Polynomial(1.0, over=4, power=2, end=0.2)
    check(schedule, [1.0, 0.65, 0.4, 0.25, 0.2, 0.2])
    assert schedule(10**9) == 0.2


def test_impossible_settings_are_refused_polynomial():
    with pytest.raises(SettingsError, match="Polynomial: expected 0 <= power < inf, found -1"):
        Polynomial(0.1, 3, power=-1)


@given(every=st.integers(1, 15), factor=st.floats(0, 1.2))
def test_agrees_with_pytorch_of_steps(every, factor, torch):
    def make(method):
        return torch.optim.lr_scheduler.StepLR(method, every, factor)

    check(Step(0.3, every, factor), torchs(torch, 0.3, make))


@pytest.mark.parametrize("every", [0, 2.5])
def test_impossible_settings_are_refused_of_steps(every):
    with pytest.raises(SettingsError, match="Step: expected every to be a whole number of at"):
        Step(0.1, every)
    with pytest.raises(SettingsError, match="Step: expected 0 <= rate < inf, found -1"):
        Step(-1, 3)


@given(milestones=st.lists(st.integers(1, 45), max_size=5), factor=st.floats(0, 1.2))
def test_agrees_with_pytorch_multistep(milestones, factor, torch):
    def make(method):
        return torch.optim.lr_scheduler.MultiStepLR(method, milestones, factor)

    check(MultiStep(0.3, tuple(sorted(milestones)), factor), torchs(torch, 0.3, make))


def test_a_list_of_milestones_becomes_a_tuple():
    assert MultiStep(0.1, [3, 5]) == MultiStep(0.1, (3, 5))


def test_milestones_out_of_order_are_refused():
    with pytest.raises(SettingsError, match=r"MultiStep: expected milestones >= 0 in .* \(5, 3\)"):
        MultiStep(0.1, (5, 3))


@given(factor=st.floats(0.01, 1.2), over=st.integers(1, 9))
def test_agrees_with_pytorch_exponential(factor, over, torch):
    def make(method):
        return torch.optim.lr_scheduler.ExponentialLR(method, factor ** (1 / over))

    check(Exponential(0.3, factor, over), torchs(torch, 0.3, make))


def test_impossible_settings_are_refused_exponential():
    with pytest.raises(SettingsError, match="Exponential: expected 0 <= factor < inf, found -2"):
        Exponential(0.1, -2)
    with pytest.raises(SettingsError, match="Exponential: expected over to be a whole number of"):
        Exponential(0.1, 0.5, over=0)


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
