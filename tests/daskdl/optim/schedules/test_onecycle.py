"""OneCycle against PyTorch's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from daskdl.optim.schedules import OneCycle
from tests.daskdl.optim.schedules.rates import check, torchs


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
