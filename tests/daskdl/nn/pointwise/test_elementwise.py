"""Layers that compute each number by itself."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import nn
from daskdl.tensor import Tensor
from tests.daskdl.gradients import normal
from tests.daskdl.nn.like_pytorch import check_like_pytorch


def test_powers_and_limits(torch):
    shape = (3, 4)
    power = nn.Power(2.0, scale=0.5, shift=1.0)
    check_like_pytorch(torch, power, lambda x: (1 + x / 2) ** 2, shape, channels=False)
    clip = nn.Clip(-0.3, 0.4)
    check_like_pytorch(torch, clip, lambda x: x.clamp(-0.3, 0.4), shape, channels=False)
    affine = nn.Affine(2.0, -1.0)
    check_like_pytorch(torch, affine, lambda x: 2 * x - 1, shape, channels=False)


@pytest.mark.parametrize("shape", [4, (1,), (3, 4), (3, 1)])
def test_learned_scale(shape):
    layer, x = nn.Scale(shape), normal(2, 3, 4).astype("f4")
    layer.weight.data[...] = normal(*layer.shape)
    layer.bias.data[...] = 1
    np.testing.assert_allclose(layer(x).data, x * layer.weight.data + 1, rtol=1e-6)
    assert nn.Scale(4, bias=False).flat.size == nn.Scale(4, weight=False).flat.size == 4


def test_gradient_reversal():
    x = Tensor(normal(2, 3), requires_grad=True)
    y = nn.GradientReversal(0.5)(x)
    y.backward(np.ones((2, 3)))
    np.testing.assert_array_equal(y.data, x.data)
    np.testing.assert_array_equal(x.grad, np.full((2, 3), -0.5))


#: Activations with their arguments, which PyTorch has in the same order.
ACTIVATIONS = [
    ("LeakyReLU", 0.1), ("ELU", 0.7), ("GELU", "tanh"), ("Softplus", 2.0),
    ("Threshold", 0.2, -3.0), ("HardTanh", -0.4, 0.3), ("HardShrink", 0.3), ("SoftShrink", 0.3),
    *((name,) for name in (
        "GELU", "ReLU", "ReLU6", "SELU", "SiLU", "Mish", "Sigmoid", "LogSigmoid", "Tanh",
        "TanhShrink", "Softsign", "HardSigmoid", "HardSwish",
    )),
]  # fmt: skip


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=str)
def test_agrees_with_pytorch(activation, torch):
    name, *arguments = activation
    theirs = next(getattr(torch.nn, n) for n in dir(torch.nn) if n.lower() == name.lower())
    theirs = theirs(approximate="tanh") if arguments == ["tanh"] else theirs(*arguments)
    edges = [n for n in arguments if isinstance(n, float)]
    x = np.append(3 * normal(2, 3, 4, 5), edges).astype("f4")
    check_like_pytorch(torch, getattr(nn, name)(*arguments), theirs, x, channels=False)


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


def test_srelu_has_three_pieces():
    layer, x = nn.SReLU(3), (3 * normal(40, 3)).astype("f4")
    joints = [layer.left, layer.slope_left, layer.right, layer.slope_right]
    for parameter, values in zip(
        joints, ([-1, 0, -2], [0.1, 0.2, 2], [1, 0.5, 2], [3, 2, 1]), strict=True
    ):
        parameter.data[:] = values
    left, a, right, b = (parameter.data for parameter in joints)
    expected = np.where(x >= right, right + b * (x - right), x)
    expected = np.where(x <= left, left + a * (x - left), expected)
    np.testing.assert_allclose(layer(x).data, expected, rtol=1e-5)


X = normal(3, 2, 4).astype("f4")


def test_maxout_takes_the_largest_map():
    layer = nn.Maxout(4, 3, 5, seed=0)
    pieces = (X @ layer.linear.weight.data.T + layer.linear.bias.data).reshape(3, 2, 5, 3)
    np.testing.assert_allclose(layer(X).data, pieces.max(2), atol=1e-6)


def test_highway_is_a_mean_of_input_and_map():
    layer = nn.Highway(4, nn.ReLU(), seed=0)
    gate = 1 / (1 + np.exp(-(X @ layer.gate.weight.data.T - 2)))
    mapped = np.maximum(X @ layer.linear.weight.data.T + layer.linear.bias.data, 0)
    np.testing.assert_allclose(layer(X).data, gate * mapped + (1 - gate) * X, atol=1e-5)
    assert gate.mean() < 0.3


@pytest.mark.parametrize("axis", [1, -1])
@pytest.mark.parametrize("name", ["Softmax", "LogSoftmax", "Softmin"])
def test_agrees_with_pytorch_along_an_axis(name, axis, torch):
    ours, theirs = getattr(nn, name)(axis), getattr(torch.nn, name)(axis)
    check_like_pytorch(torch, ours, theirs, (3, 4, 5), channels=False)


def test_binary():
    x = np.array([-1, 0, 0.5, 2], "f4")
    y = nn.BinaryThreshold(0.5)(x).data
    np.testing.assert_array_equal(y, np.array([0, 0, 0, 1], "f4"))
