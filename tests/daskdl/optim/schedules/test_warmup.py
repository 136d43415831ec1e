"""Warmup against PyTorch's linear schedule in front of others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from daskdl.optim.schedules import Cosine, Plateau, Polynomial, Step, Warmup
from tests.daskdl.optim.schedules.rates import check, torchs


@given(iterations=st.integers(1, 20), start=st.floats(0, 0.9), every=st.integers(1, 9))
def test_agrees_with_pytorch(iterations, start, every, torch):
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


def test_impossible_settings_are_refused():
    with pytest.raises(SettingsError, match="Warmup: expected a Schedule or a number to go on"):
        Warmup(lambda i: 0.1, 3)
    with pytest.raises(SettingsError, match="Warmup: expected 0 <= then < inf, found None"):
        Warmup(None, 3)
    with pytest.raises(SettingsError, match="Warmup: expected iterations to be a whole number of"):
        Warmup(0.1, -1)
