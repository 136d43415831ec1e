"""The separable convolution beside two of PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import ShapeError
from tests.daskdl.nn.beside_pytorch import check_like_pytorch


@pytest.mark.parametrize(("stride", "multiplier"), [(1, 1), (2, 3)])
def test_agrees_with_pytorch(stride, multiplier, torch):
    ours = nn.SeparableConv2d(4, 6, 3, stride, 1, multiplier)
    between = 4 * multiplier
    theirs = torch.nn.Sequential(
        torch.nn.Conv2d(4, between, 3, stride, 1, groups=4, bias=False),
        torch.nn.Conv2d(between, 6, 1),
    )
    names = {
        "depthwise.weight": "0.weight",
        "pointwise.weight": "1.weight",
        "pointwise.bias": "1.bias",
    }
    check_like_pytorch(torch, ours, theirs, (2, 5, 6, 4), names=names)


def test_other_inputs_are_refused():
    with pytest.raises(ShapeError, match=r"SeparableConv2d: expected .* \(N, H, W, 4\)"):
        nn.SeparableConv2d(4, 6, 3)(np.ones((2, 5, 5, 3), "f4"))
