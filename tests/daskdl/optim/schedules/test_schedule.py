"""Learning rates by the iteration, by phases and by a metric, compared with PyTorch's."""

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
    OneCycle,
    Plateau,
    Polynomial,
    Schedule,
    Sequence,
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


def test_a_users_schedule_needs_one_function():
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


def test_a_plateau_starts_at_its_first_rate():
    check(Plateau(0.3), [0.3] * 5)
    assert Plateau(0.3).at(7, Plateau(0.3).init()) == 0.3


def test_a_metric_that_is_not_a_number_is_no_better():
    schedule = Plateau(1.0, factor=0.5, patience=1)
    state = schedule.init()
    for _ in range(2):
        state = schedule.observe(state, float("nan"))
    assert schedule.at(0, state) == 0.5


def test_a_plateau_never_rises_to_its_lowest_rate():
    schedule = Plateau(0.1, patience=0, lowest=0.2)
    state = schedule.observe(schedule.observe(schedule.init(), 1.0), 1.0)
    assert schedule.at(0, state) == 0.1


RATE = 0.3
#: Drawn settings, our schedule of them, and PyTorch's for a method.
CURVES = {
    "Cosine": (
        st.tuples(st.integers(1, 45), st.floats(0, 0.3)),
        lambda over, end: Cosine(RATE, over, end),
        lambda kinds, method, over, end: kinds.CosineAnnealingLR(method, over, end),
    ),
    "InverseTime": (
        st.tuples(st.floats(0, 3), st.integers(1, 9)),
        lambda decay, over: InverseTime(RATE, decay, over),
        lambda kinds, method, decay, over: kinds.LambdaLR(
            method, lambda i: 1 / (1 + decay * i / over)
        ),
    ),
    "Polynomial": (
        st.tuples(st.integers(1, 45), st.floats(0.2, 4)),
        lambda over, power: Polynomial(RATE, over, power),
        lambda kinds, method, over, power: kinds.PolynomialLR(method, over, power),
    ),
    "Step": (
        st.tuples(st.integers(1, 15), st.floats(0, 1.2)),
        lambda every, factor: Step(RATE, every, factor),
        lambda kinds, method, every, factor: kinds.StepLR(method, every, factor),
    ),
    "MultiStep": (
        st.tuples(st.lists(st.integers(1, 45), max_size=5), st.floats(0, 1.2)),
        lambda milestones, factor: MultiStep(RATE, tuple(sorted(milestones)), factor),
        lambda kinds, method, milestones, factor: kinds.MultiStepLR(method, milestones, factor),
    ),
    "Exponential": (
        st.tuples(st.floats(0.01, 1.2), st.integers(1, 9)),
        lambda factor, over: Exponential(RATE, factor, over),
        lambda kinds, method, factor, over: kinds.ExponentialLR(method, factor ** (1 / over)),
    ),
    "Cosine again": (
        st.tuples(st.integers(1, 15), st.integers(1, 3), st.floats(0, 0.3)),
        lambda over, stretch, end: Cosine(RATE, over, end, restarts=True, stretch=stretch),
        lambda kinds, *drawn: kinds.CosineAnnealingWarmRestarts(*drawn),
    ),
    "OneCycle": (
        st.tuples(st.integers(8, 40), st.floats(0.15, 0.5), st.floats(1, 50), st.floats(1, 1e5),
                  st.booleans(), st.booleans()),
        lambda *drawn: OneCycle(RATE, *drawn),
        lambda kinds, method, over, rise, first, last, linear, three: kinds.OneCycleLR(
            method, RATE, over, pct_start=rise, anneal_strategy="linear" if linear else "cos",
            cycle_momentum=False, div_factor=first, final_div_factor=last, three_phase=three,
        ),
    ),
    "Sequence": (
        st.tuples(st.integers(1, 15), st.integers(1, 15), st.floats(0.5, 1)),
        lambda first, second, factor: Sequence(
            (Exponential(RATE, factor), Step(RATE, 3, 0.5), Cosine(RATE, 40)),
            (first, first + second),
        ),
        lambda kinds, method, first, second, factor: kinds.SequentialLR(
            method, [kinds.ExponentialLR(method, factor), kinds.StepLR(method, 3, 0.5),
                     kinds.CosineAnnealingLR(method, 40)], [first, first + second],
        ),
    ),
    "Warmup": (
        st.tuples(st.integers(1, 20), st.floats(0, 0.9), st.integers(1, 9)),
        lambda iterations, start, every: Warmup(Step(RATE, every, 0.5), iterations, start),
        lambda kinds, method, iterations, start, every: kinds.SequentialLR(
            method, [kinds.LinearLR(method, start + (1 - start) / iterations,
                                    total_iters=max(1, iterations - 1)),
                     kinds.StepLR(method, every, 0.5)], [iterations],
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CURVES)
@given(data=st.data())
def test_curves_agree_with_pytorch(name, data, torch):
    draws, ours, theirs = CURVES[name]
    drawn = data.draw(draws)
    # After its end, PyTorch's cosine rises again, and its cycle raises an error.
    more = {"Cosine": 1, "OneCycle": -1}.get(name)
    count = 40 if more is None else drawn[0] + more
    kinds = torch.optim.lr_scheduler
    expected = torchs(torch, RATE, lambda method: theirs(kinds, method, *drawn), count)
    check(ours(*drawn), expected)


def test_rates_after_the_end():
    assert Cosine(0.3, 20, 0.1)(27) == pytest.approx(0.1)
    for stretch in (1, 2, 3):
        again = Cosine(0.3, 7, 0.1, restarts=True, stretch=stretch)
        assert 0.1 <= again(10**9 + 7) <= 0.3 + 1e-12
    cycle = OneCycle(0.3, 10, first=2, last=5)
    assert cycle(9) == pytest.approx(0.03)
    assert cycle(100) == pytest.approx(0.03)


def test_polynomial_falls_to_its_end_and_stays():
    schedule = Polynomial(1.0, over=4, power=2, end=0.2)
    check(schedule, [1.0, 0.65, 0.4, 0.25, 0.2, 0.2])
    assert schedule(10**9) == 0.2


def test_a_list_of_milestones_becomes_a_tuple():
    assert MultiStep(0.1, [3, 5]) == MultiStep(0.1, (3, 5))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Plateau(0.1, factor=1.5), r"Plateau: expected 0 <= factor < 1, found 1\.5"),
        (lambda: Plateau(0.1, patience=-1), "Plateau: expected patience to be a whole number"),
        (lambda: Cosine(0.1, 3, stretch=2), "Cosine: expected restarts=True with stretch=2, found"),
        (lambda: Cosine(0.1, 0), "Cosine: expected over to be a whole number of at"),
        (lambda: InverseTime(0.1, -2), "InverseTime: expected 0 <= decay < inf, found -2"),
        (lambda: InverseTime(0.1, 0.5, over=0), "InverseTime: expected over to be a whole number"),
        (lambda: Polynomial(0.1, 3, power=-1), "Polynomial: expected 0 <= power < inf, found -1"),
        (lambda: Step(0.1, 0), "Step: expected every to be a whole number of at"),
        (lambda: Step(0.1, 2.5), "Step: expected every to be a whole number of at"),
        (lambda: Step(-1, 3), "Step: expected 0 <= rate < inf, found -1"),
        (lambda: MultiStep(0.1, (5, 3)), r"MultiStep: expected milestones >= 0 in .* \(5, 3\)"),
        (lambda: Exponential(0.1, -2), "Exponential: expected 0 <= factor < inf, found -2"),
        (lambda: Exponential(0.1, 0.5, over=0), "Exponential: expected over to be a whole number"),
        (
            lambda: OneCycle(0.1, 20, rise=0.6, three_phases=True),
            r"OneCycle: expected 1 / over < rise <= 0\.5, found",
        ),
        (lambda: OneCycle(0.1, 20, rise=0.05), "OneCycle: expected 1 / over < rise <= 1, found"),
        (lambda: OneCycle(0.1, 20, first=0), "OneCycle: expected 1 <= first < inf, found 0"),
        (
            lambda: Sequence((Plateau(0.1), Step(0.1, 3)), (3,)),
            "Sequence: expected schedules of the iteration alone",
        ),
        (
            lambda: Sequence((Step(0.1, 3),) * 3, (5, 5)),
            r"expected a milestone before .* milestones \(5, 5\)",
        ),
        (lambda: Sequence([Step(0.1, 3)], [5]), r"found 1 schedules and milestones \(5,\)"),
        (lambda: Warmup(lambda i: 0.1, 3), "Warmup: expected a Schedule or a number to go on"),
        (lambda: Warmup(None, 3), "Warmup: expected 0 <= then < inf, found None"),
        (lambda: Warmup(0.1, -1), "Warmup: expected iterations to be a whole number of"),
    ],
)
def test_impossible_settings_are_refused(make, sentence):
    with pytest.raises(SettingsError, match=sentence):
        make()


def torchs(torch: Any, rate: float, make: Callable[[Any], Any], count: int = 40) -> list[float]:
    """Return the learning rates of a PyTorch schedule for a number of iterations."""
    method = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=rate)
    schedule, rates = make(method), []
    for _ in range(count):
        rates.append(method.param_groups[0]["lr"])
        method.step()
        schedule.step()
    return rates


def check(schedule: Schedule, expected: list[float]) -> None:
    """Assert that a schedule has these rates from iteration 0, and that it pickles."""
    rates = [schedule(i) for i in range(len(expected))]
    assert all(type(rate) is float for rate in rates)
    np.testing.assert_allclose(rates, expected, rtol=1e-9, atol=1e-13)
    twin = pickle.loads(pickle.dumps(schedule))
    assert twin == schedule
    assert repr(twin) == repr(schedule)
    assert hash(twin) == hash(schedule)


def test_warmup_to_a_number():
    check(Warmup(0.5, 5), [0.1, 0.2, 0.3, 0.4, 0.5, 0.5])
    check(Warmup(0.5, 2, start=0.5), [0.375, 0.5, 0.5])
    check(Warmup(Polynomial(1.0, 2), 0), [1.0, 0.5, 0.0])


def test_the_schedule_after_a_warmup_begins_at_its_top():
    schedule = Warmup(Cosine(0.3, 10), 4)
    assert schedule(3) == schedule(4) == 0.3
    assert schedule(14) == pytest.approx(0)


def test_a_plateau_after_a_warmup_hears_metrics():
    schedule = Warmup(Plateau(1.0, factor=0.5, patience=0), 4)
    state = schedule.observe(schedule.observe(schedule.init(), 1.0), 1.0)
    assert schedule.at(1, state) == 0.25
    assert schedule.at(9, state) == 0.5
    assert schedule(9) == 1.0
    assert Warmup(1.0, 3).observe({}, 1.0) == {}
