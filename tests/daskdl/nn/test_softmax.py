"""Softmax layers beside PyTorch's."""

from __future__ import annotations

import pytest

from daskdl import nn
from tests.daskdl.nn.beside_pytorch import check_like_pytorch


@pytest.mark.parametrize("axis", [1, -1])
@pytest.mark.parametrize("name", ["Softmax", "LogSoftmax", "Softmin"])
def test_agrees_with_pytorch(name, axis, torch):
    ours, theirs = getattr(nn, name)(axis), getattr(torch.nn, name)(axis)
    check_like_pytorch(torch, ours, theirs, (3, 4, 5), channels=False)
