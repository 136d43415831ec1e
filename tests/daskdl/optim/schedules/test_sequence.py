"""Sequence against PyTorch's SequentialLR."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from daskdl.optim.schedules import Cosine, Exponential, Plateau, Sequence, Step
from tests.daskdl.optim.schedules.rates import check, torchs


@given(first=st.integers(1, 15), second=st.integers(1, 15), factor=st.floats(0.5, 1))
def test_agrees_with_pytorch(first, second, factor, torch):
    def make(method):
        kinds = torch.optim.lr_scheduler
        parts = [
            kinds.ExponentialLR(method, factor),
            kinds.StepLR(method, 3, 0.5),
            kinds.CosineAnnealingLR(method, 40),
        ]
        return kinds.SequentialLR(method, parts, [first, first + second])

    ours = Exponential(0.3, factor), Step(0.3, 3, 0.5), Cosine(0.3, 40)
    check(Sequence(ours, (first, first + second)), torchs(torch, 0.3, make, count=35))


def test_impossible_settings_are_refused():
    with pytest.raises(SettingsError, match="Sequence: expected schedules of the iteration alone"):
        Sequence((Plateau(0.1), Step(0.1, 3)), (3,))
    with pytest.raises(SettingsError, match=r"expected a milestone before .* milestones \(5, 5\)"):
        Sequence((Step(0.1, 3),) * 3, (5, 5))
    with pytest.raises(SettingsError, match=r"found 1 schedules and milestones \(5,\)"):
        Sequence([Step(0.1, 3)], [5])
