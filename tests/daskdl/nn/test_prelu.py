"""Rectifiers with slopes that are learned or drawn, beside PyTorch's and by their formulas."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import SettingsError, ShapeError
from tests.daskdl.gradients import normal
from tests.daskdl.nn.beside_pytorch import check_like_pytorch


@pytest.mark.parametrize("channels", [1, 4])
def test_learned_slopes_agree_with_pytorch(channels, torch):
    theirs, names = torch.nn.PReLU(channels), {"slope": "weight"}
    check_like_pytorch(torch, nn.PReLU(channels), theirs, (2, 3, 5, 4), names=names)


def test_drawn_slopes():
    layer, x = nn.RReLU(0.1, 0.3), normal(50, 40).astype("f4")
    with nn.drawing(1):
        y = layer(x).data
    slopes = (y / x)[x < 0]
    assert 0.1 <= slopes.min() < 0.11
    assert 0.29 < slopes.max() <= 0.3001
    np.testing.assert_array_equal(y[x >= 0], x[x >= 0])
    np.testing.assert_allclose(layer.eval()(x).data, np.where(x < 0, 0.2 * x, x), rtol=1e-5)
    with pytest.raises(SettingsError, match="low <= high, found 2 and 1"):
        nn.RReLU(2, 1)


def test_three_pieces():
    layer, x = nn.SReLU(3), (3 * normal(40, 3)).astype("f4")
    joints = [layer.left, layer.slope_left, layer.right, layer.slope_right]
    for held, values in zip(
        joints, ([-1, 0, -2], [0.1, 0.2, 2], [1, 0.5, 2], [3, 2, 1]), strict=True
    ):
        held.data[:] = values
    left, a, right, b = (held.data for held in joints)
    expected = np.where(x >= right, right + b * (x - right), x)
    expected = np.where(x <= left, left + a * (x - left), expected)
    np.testing.assert_allclose(layer(x).data, expected, rtol=1e-5)
    with pytest.raises(ShapeError, match=r"SReLU: expected .* \(\.\.\., 3\)"):
        layer(x[:, :2])
