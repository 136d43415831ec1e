"""Polynomial against PyTorch's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from daskdl.optim.schedules import Polynomial
from tests.daskdl.optim.schedules.rates import check, torchs


@given(over=st.integers(1, 45), power=st.floats(0.2, 4))
def test_agrees_with_pytorch(over, power, torch):
    def make(method):
        return torch.optim.lr_scheduler.PolynomialLR(method, over, power)

    check(Polynomial(0.3, over, power), torchs(torch, 0.3, make))


def test_it_falls_to_its_end_and_stays():
    schedule = Polynomial(1.0, over=4, power=2, end=0.2)
    check(schedule, [1.0, 0.65, 0.4, 0.25, 0.2, 0.2])
    assert schedule(10**9) == 0.2


def test_impossible_settings_are_refused():
    with pytest.raises(SettingsError, match="Polynomial: expected 0 <= power < inf, found -1"):
        Polynomial(0.1, 3, power=-1)
