"""The trajectory GRU layer: with and without input, its state, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import ShapeError
from tests.daskdl.gradients import normal


def made(inputs, **settings):
    return nn.TrajGRU(inputs, 3, links=2, flow_channels=4, flow_kernel=3, seed=0, **settings)


def test_a_sequence_in_two_pieces_is_the_same():
    layer, x = made(2), normal(2, 4, 5, 6, 2).astype("f4")
    whole, last = layer(x)
    assert whole.shape == (2, 4, 5, 6, 3)
    _, state = layer(x[:, :2])
    second, end = layer(x[:, 2:], state)
    np.testing.assert_allclose(second.data, whole.data[:, 2:], atol=1e-6)
    np.testing.assert_allclose(end.data, last.data, atol=1e-6)


def test_without_input_it_unrolls_its_state():
    outputs, _ = made(0)(None, normal(2, 5, 6, 3).astype("f4"), steps=3)
    assert outputs.shape == (2, 3, 5, 6, 3)
    with pytest.raises(ShapeError, match="without an input expected in_channels=0, a state"):
        made(0)(None)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"kernel_size": 2}, "odd kernel_size, found 2"),
    ],
)
def test_impossible_settings(arguments, sentence):
    with pytest.raises(ShapeError, match=sentence):
        made(2, **arguments)


def test_other_inputs_are_refused():
    with pytest.raises(ShapeError, match=r"TrajGRU: expected .* \(N, T, H, W, 2\)"):
        made(2)(np.ones((1, 2, 3, 3, 3), "f4"))
