"""Maxout and highway layers by their formulas."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import ShapeError
from tests.daskdl.gradients import normal

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


@pytest.mark.parametrize("make", [lambda: nn.Maxout(3, 2, 2), lambda: nn.Highway(3)])
def test_other_channels_are_refused(make):
    with pytest.raises(ShapeError, match=r"(Maxout|Highway): expected .* \(\.\.\., 3\)"):
        make()(X)
