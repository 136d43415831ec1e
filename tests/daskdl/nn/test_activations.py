"""Activations as layers."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import nn, ops
from tests.daskdl.gradients import normal
from tests.daskdl.nn.layers import check_layer

ALL = {
    "ReLU": ops.relu,
    "LeakyReLU": ops.leaky_relu,
    "Sigmoid": ops.sigmoid,
    "Tanh": ops.tanh,
    "Softplus": ops.softplus,
}


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("shape", [(6,), (2, 3, 4, 5)])
def test_layer(name, shape, tmp_path):
    layer = getattr(nn, name)
    check_layer(layer, shape, shape, tmp_path)
    x = normal(*shape)
    np.testing.assert_array_equal(layer()(x).data, ALL[name](x).data)


def test_slope_reaches_the_operation(tmp_path):
    assert nn.LeakyReLU(0.5)(np.array([-2.0])).data == -1
    check_layer(lambda: nn.LeakyReLU(slope=0.5), (5,), (5,), tmp_path)
