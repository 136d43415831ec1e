"""Exponential against PyTorch's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from daskdl.optim.schedules import Exponential
from tests.daskdl.optim.schedules.rates import check, torchs


@given(factor=st.floats(0.01, 1.2), over=st.integers(1, 9))
def test_agrees_with_pytorch(factor, over, torch):
    def make(method):
        return torch.optim.lr_scheduler.ExponentialLR(method, factor ** (1 / over))

    check(Exponential(0.3, factor, over), torchs(torch, 0.3, make))


def test_impossible_settings_are_refused():
    with pytest.raises(SettingsError, match="Exponential: expected 0 <= factor < inf, found -2"):
        Exponential(0.1, -2)
    with pytest.raises(SettingsError, match="Exponential: expected over to be a whole number of"):
        Exponential(0.1, 0.5, over=0)
