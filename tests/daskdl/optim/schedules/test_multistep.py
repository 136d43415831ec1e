"""MultiStep against PyTorch's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from daskdl.optim.schedules import MultiStep
from tests.daskdl.optim.schedules.rates import check, torchs


@given(milestones=st.lists(st.integers(1, 45), max_size=5), factor=st.floats(0, 1.2))
def test_agrees_with_pytorch(milestones, factor, torch):
    def make(method):
        return torch.optim.lr_scheduler.MultiStepLR(method, milestones, factor)

    check(MultiStep(0.3, tuple(sorted(milestones)), factor), torchs(torch, 0.3, make))


def test_a_list_of_milestones_becomes_a_tuple():
    assert MultiStep(0.1, [3, 5]) == MultiStep(0.1, (3, 5))


def test_milestones_out_of_order_are_refused():
    with pytest.raises(SettingsError, match=r"MultiStep: expected milestones >= 0 in .* \(5, 3\)"):
        MultiStep(0.1, (5, 3))
