"""Learning rates that fall by a factor, beside PyTorch's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from daskdl.optim.schedules import Exponential, MultiStep, Step
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


@given(milestones=st.lists(st.integers(1, 45), max_size=5), factor=st.floats(0, 1.2))
def test_agrees_with_pytorch_multistep(milestones, factor, torch):
    def make(method):
        return torch.optim.lr_scheduler.MultiStepLR(method, milestones, factor)

    check(MultiStep(0.3, tuple(sorted(milestones)), factor), torchs(torch, 0.3, make))


def test_a_list_of_milestones_becomes_a_tuple():
    assert MultiStep(0.1, [3, 5]) == MultiStep(0.1, (3, 5))


def test_milestones_out_of_order_are_refused():
    with pytest.raises(SettingsError, match=r"MultiStep: expected milestones >= 0 in .* \(5, 3\)"):
        MultiStep(0.1, (5, 3))


@given(factor=st.floats(0.01, 1.2), over=st.integers(1, 9))
def test_agrees_with_pytorch_exponential(factor, over, torch):
    def make(method):
        return torch.optim.lr_scheduler.ExponentialLR(method, factor ** (1 / over))

    check(Exponential(0.3, factor, over), torchs(torch, 0.3, make))


def test_impossible_settings_are_refused_exponential():
    with pytest.raises(SettingsError, match="Exponential: expected 0 <= factor < inf, found -2"):
        Exponential(0.1, -2)
    with pytest.raises(SettingsError, match="Exponential: expected over to be a whole number of"):
        Exponential(0.1, 0.5, over=0)
