"""Learning rates of one phase after the other, beside PyTorch's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from daskdl.optim.schedules import (
    Cosine,
    Exponential,
    OneCycle,
    Plateau,
    Polynomial,
    Sequence,
    Step,
    Warmup,
)
from tests.daskdl.optim.schedules.test_schedule import check, torchs


@given(
    over=st.integers(8, 40),
    rise=st.floats(0.15, 0.5),
    first=st.floats(1, 50),
    last=st.floats(1, 1e5),
    linear=st.booleans(),
    three=st.booleans(),
)
def test_agrees_with_pytorch(over, rise, first, last, linear, three, torch):
    def make(method):
        return torch.optim.lr_scheduler.OneCycleLR(
            method,
            0.3,
            total_steps=over,
            pct_start=rise,
            anneal_strategy="linear" if linear else "cos",
            cycle_momentum=False,
            div_factor=first,
            final_div_factor=last,
            three_phase=three,
        )

    # PyTorch's refuses to go on after its end.
    expected = torchs(torch, 0.3, lambda m: make(m), count=over - 1)
    schedule = OneCycle(0.3, over, rise, first, last, linear, three)
    check(schedule, expected)
    assert schedule(over - 1) == pytest.approx(0.3 / first / last)
    assert schedule(10 * over) == pytest.approx(0.3 / first / last)


def test_impossible_settings_are_refused():
    with pytest.raises(SettingsError, match=r"OneCycle: expected 1 / over < rise <= 0\.5, found"):
        OneCycle(0.1, 20, rise=0.6, three_phases=True)
    with pytest.raises(SettingsError, match="OneCycle: expected 1 / over < rise <= 1, found rise="):
        OneCycle(0.1, 20, rise=0.05)
    with pytest.raises(SettingsError, match="OneCycle: expected 1 <= first < inf, found 0"):
        OneCycle(0.1, 20, first=0)


@given(first=st.integers(1, 15), second=st.integers(1, 15), factor=st.floats(0.5, 1))
def test_agrees_with_pytorch_sequence(first, second, factor, torch):
    def make(method):
        kinds = torch.optim.lr_scheduler
        parts = [
            kinds.ExponentialLR(method, factor),
            kinds.StepLR(method, 3, 0.5),
            kinds.CosineAnnealingLR(method, 40),
        ]
        return kinds.SequentialLR(method, parts, [first, first + second])

    ours = Exponential(0.3, factor), Step(0.3, 3, 0.5), Cosine(0.3, 40)
    check(Sequence(ours, (first, first + second)), torchs(torch, 0.3, make, count=35))


def test_impossible_settings_are_refused_sequence():
    with pytest.raises(SettingsError, match="Sequence: expected schedules of the iteration alone"):
        Sequence((Plateau(0.1), Step(0.1, 3)), (3,))
    with pytest.raises(SettingsError, match=r"expected a milestone before .* milestones \(5, 5\)"):
        Sequence((Step(0.1, 3),) * 3, (5, 5))
    with pytest.raises(SettingsError, match=r"found 1 schedules and milestones \(5,\)"):
        Sequence([Step(0.1, 3)], [5])


@given(iterations=st.integers(1, 20), start=st.floats(0, 0.9), every=st.integers(1, 9))
def test_agrees_with_pytorch_warmup(iterations, start, every, torch):
    def make(method):
        kinds = torch.optim.lr_scheduler
        first = start + (1 - start) / iterations
        rise = kinds.LinearLR(method, first, total_iters=max(1, iterations - 1))
        then = kinds.StepLR(method, every, 0.5)
        return kinds.SequentialLR(method, [rise, then], [iterations])

    expected = torchs(torch, 0.3, make)
    check(Warmup(Step(0.3, every, 0.5), iterations, start), expected)


def test_in_front_of_a_number():
    check(Warmup(0.5, 5), [0.1, 0.2, 0.3, 0.4, 0.5, 0.5])
    check(Warmup(0.5, 2, start=0.5), [0.375, 0.5, 0.5])
    check(Warmup(Polynomial(1.0, 2), 0), [1.0, 0.5, 0.0])


def test_what_follows_begins_when_the_top_is_reached():
    schedule = Warmup(Cosine(0.3, 10), 4)
    assert schedule(3) == schedule(4) == 0.3
    assert schedule(14) == pytest.approx(0)


def test_a_plateau_behind_it_hears_metrics():
    schedule = Warmup(Plateau(1.0, factor=0.5, patience=0), 4)
    state = schedule.observe(schedule.observe(schedule.init(), 1.0), 1.0)
    assert schedule.at(1, state) == 0.25
    assert schedule.at(9, state) == 0.5
    assert schedule(9) == 1.0
    assert Warmup(1.0, 3).observe({}, 1.0) == {}


def test_impossible_settings_are_refused_warmup():
    with pytest.raises(SettingsError, match="Warmup: expected a Schedule or a number to go on"):
        Warmup(lambda i: 0.1, 3)
    with pytest.raises(SettingsError, match="Warmup: expected 0 <= then < inf, found None"):
        Warmup(None, 3)
    with pytest.raises(SettingsError, match="Warmup: expected iterations to be a whole number of"):
        Warmup(0.1, -1)
