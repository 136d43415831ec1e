"""Learning rates along a curve, beside PyTorch's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from daskdl.optim.schedules import Cosine, InverseTime, Polynomial
from tests.daskdl.optim.schedules.rates import check, torchs


@given(over=st.integers(1, 45), end=st.floats(0, 0.3))
def test_agrees_with_pytorch(over, end, torch):
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


def test_impossible_settings_are_refused():
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
