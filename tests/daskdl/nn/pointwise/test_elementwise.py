"""Layers that compute each number by itself."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import nn, ops
from daskdl.errors import SettingsError, ShapeError
from daskdl.tensor import Tensor
from tests.daskdl.gradients import normal
from tests.daskdl.nn.beside_pytorch import check_like_pytorch
from tests.daskdl.nn.layers import check_layer


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


#: Ours -> (arguments, PyTorch's name, its arguments).
ALL = {
    "ReLU": ((), "ReLU", ()),
    "ReLU6": ((), "ReLU6", ()),
    "LeakyReLU": ((0.1,), "LeakyReLU", (0.1,)),
    "ELU": ((0.7,), "ELU", (0.7,)),
    "SELU": ((), "SELU", ()),
    "GELU": (("tanh",), "GELU", ("tanh",)),
    "SiLU": ((), "SiLU", ()),
    "Mish": ((), "Mish", ()),
    "Sigmoid": ((), "Sigmoid", ()),
    "LogSigmoid": ((), "LogSigmoid", ()),
    "Tanh": ((), "Tanh", ()),
    "TanhShrink": ((), "Tanhshrink", ()),
    "Softplus": ((2.0,), "Softplus", (2.0,)),
    "Softsign": ((), "Softsign", ()),
    "HardSigmoid": ((), "Hardsigmoid", ()),
    "HardSwish": ((), "Hardswish", ()),
}


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("shape", [(6,), (2, 3, 4, 5)])
def test_layer(name, shape, tmp_path, torch):
    arguments, theirs, others = ALL[name]
    check_layer(lambda: getattr(nn, name)(*arguments), shape, shape, tmp_path)
    theirs = getattr(torch.nn, theirs)
    theirs = theirs(approximate=others[0]) if name == "GELU" else theirs(*others)
    x = (3 * normal(*shape)).astype("f4")
    check_like_pytorch(torch, getattr(nn, name)(*arguments), theirs, x, channels=False)


@pytest.mark.parametrize("name", ["ReLU", "Sigmoid", "Tanh", "Softplus"])
def test_the_layer_is_the_operation(name):
    x = normal(2, 3)
    np.testing.assert_array_equal(getattr(nn, name)()(x).data, getattr(ops, name.lower())(x).data)


def test_slope_reaches_the_operation():
    assert nn.LeakyReLU(0.5)(np.array([-2.0])).data == -1
    assert nn.GELU("tanh")(np.array([1.0])).data != nn.GELU()(np.array([1.0])).data
