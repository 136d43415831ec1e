"""Activations as layers beside PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import nn, ops
from tests.daskdl.gradients import normal
from tests.daskdl.nn.beside_pytorch import check_like_pytorch
from tests.daskdl.nn.layers import check_layer

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
