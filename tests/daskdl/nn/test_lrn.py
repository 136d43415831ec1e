"""Local response normalisation, across channels and within them."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import SettingsError, ShapeError
from tests.daskdl.nn.beside_pytorch import check_like_pytorch


@pytest.mark.parametrize("size", [1, 3, 5])
def test_across_channels_agrees_with_pytorch(size, torch):
    ours, theirs = (n.LocalResponseNorm(size, 0.5, 0.6, 2.0) for n in (nn, torch.nn))
    check_like_pytorch(torch, ours, theirs, (2, 4, 3, 7))


@pytest.mark.parametrize("size", [1, 3, 5])
def test_within_channels(size, torch):
    def theirs(x):
        mean = torch.nn.functional.avg_pool2d(x * x, size, 1, size // 2)
        return x * (1 + 0.5 * mean) ** -0.75

    check_like_pytorch(torch, nn.WithinChannelLRN(size, 0.5), theirs, (2, 6, 5, 3))


def test_what_does_not_fit_is_said():
    with pytest.raises(
        SettingsError, match=r"LocalResponseNorm\.size: expected at least 1, found 0"
    ):
        nn.LocalResponseNorm(0)
    with pytest.raises(SettingsError, match="expected an odd number, found 4"):
        nn.WithinChannelLRN(4)
    with pytest.raises(ShapeError, match=r"WithinChannelLRN: expected .* found \(2, 3\)"):
        nn.WithinChannelLRN(3)(np.ones((2, 3), "f4"))
