"""Elementary functions as layers beside PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import SettingsError, ShapeError
from daskdl.tensor import Tensor
from tests.daskdl.gradients import normal
from tests.daskdl.nn.beside_pytorch import check_like_pytorch


@pytest.mark.parametrize("name", ["Abs", "Exp", "Log", "Sqrt", "Square"])
def test_functions_agree_with_pytorch(name, torch):
    x = (np.abs(normal(2, 5)) + 0.1).astype("f4")
    check_like_pytorch(torch, getattr(nn, name)(), getattr(torch, name.lower()), x, channels=False)


def test_powers_and_limits(torch):
    shape = (3, 4)
    power = nn.Power(2.0, scale=0.5, shift=1.0)
    check_like_pytorch(torch, power, lambda x: (1 + x / 2) ** 2, shape, channels=False)
    clip = nn.Clip(-0.3, 0.4)
    check_like_pytorch(torch, clip, lambda x: x.clamp(-0.3, 0.4), shape, channels=False)
    affine = nn.Affine(2.0, -1.0)
    check_like_pytorch(torch, affine, lambda x: 2 * x - 1, shape, channels=False)
    with pytest.raises(SettingsError, match="Clip: expected low <= high, found 1 and 0"):
        nn.Clip(1, 0)


@pytest.mark.parametrize("shape", [4, (1,), (3, 4), (3, 1)])
def test_learned_scale(shape):
    layer, x = nn.Scale(shape), normal(2, 3, 4).astype("f4")
    layer.weight.data[...] = normal(*layer.shape)
    layer.bias.data[...] = 1
    np.testing.assert_allclose(layer(x).data, x * layer.weight.data + 1, rtol=1e-6)
    assert nn.Scale(4, bias=False).flat.size == nn.Scale(4, weight=False).flat.size == 4


def test_scale_that_does_not_fit_is_refused():
    for x in (np.ones((2, 3), "f4"), np.ones(4, "f4")):
        with pytest.raises(ShapeError, match=r"Scale: expected .* take \(2, 4\), found"):
            nn.Scale((2, 4))(x)
    with pytest.raises(SettingsError, match="expected a weight or a bias"):
        nn.Scale(3, False, False)


def test_gradient_reversal():
    x = Tensor(normal(2, 3), requires_grad=True)
    y = nn.GradientReversal(0.5)(x)
    y.backward(np.ones((2, 3)))
    np.testing.assert_array_equal(y.data, x.data)
    np.testing.assert_array_equal(x.grad, np.full((2, 3), -0.5))
