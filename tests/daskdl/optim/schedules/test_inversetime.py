"""InverseTime against PyTorch's schedule of any function."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from daskdl.optim.schedules import InverseTime
from tests.daskdl.optim.schedules.rates import check, torchs


@given(decay=st.floats(0, 3), over=st.integers(1, 9))
def test_agrees_with_pytorch(decay, over, torch):
    def make(method):
        return torch.optim.lr_scheduler.LambdaLR(method, lambda i: 1 / (1 + decay * i / over))

    check(InverseTime(0.3, decay, over), torchs(torch, 0.3, make))


def test_impossible_settings_are_refused():
    with pytest.raises(SettingsError, match="InverseTime: expected 0 <= decay < inf, found -2"):
        InverseTime(0.1, -2)
    with pytest.raises(SettingsError, match="InverseTime: expected over to be a whole number of"):
        InverseTime(0.1, 0.5, over=0)
