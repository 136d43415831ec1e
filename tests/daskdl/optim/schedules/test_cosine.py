"""Cosine against PyTorch's, with restarts and without."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from daskdl.optim.schedules import Cosine
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
