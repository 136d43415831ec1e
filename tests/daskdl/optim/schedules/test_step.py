"""Step against PyTorch's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from daskdl.optim.schedules import Step
from tests.daskdl.optim.schedules.rates import check, torchs


@given(every=st.integers(1, 15), factor=st.floats(0, 1.2))
def test_agrees_with_pytorch(every, factor, torch):
    def make(method):
        return torch.optim.lr_scheduler.StepLR(method, every, factor)

    check(Step(0.3, every, factor), torchs(torch, 0.3, make))


@pytest.mark.parametrize("every", [0, 2.5])
def test_impossible_settings_are_refused(every):
    with pytest.raises(SettingsError, match="Step: expected every to be a whole number of at"):
        Step(0.1, every)
    with pytest.raises(SettingsError, match="Step: expected 0 <= rate < inf, found -1"):
        Step(-1, 3)
