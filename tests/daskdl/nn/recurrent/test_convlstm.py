"""Recurrent layers of images."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import nn, ops
from daskdl.errors import ShapeError
from tests.daskdl.gradients import normal
from tests.daskdl.nn.layers import check_layer


@pytest.mark.slow
@pytest.mark.parametrize(("channels", "kernel"), [(2, 3), (8, 3), (8, 5)])
def test_layer(channels, kernel, tmp_path):
    check_layer(
        lambda: nn.ConvLSTM(3, channels, kernel, seed=1),
        (2, 3, 6, 5, 3),
        (2, 3, 6, 5, channels),
        tmp_path,
        parameters=4 * channels * (kernel**2 * (3 + channels) + 1),
        wrong_shape=(2, 6, 5, 3),
        sentence=r"expected an input of shape \(N, T, H, W, 3\).*found \(2, 6, 5, 3\)",
    )


def test_without_input_it_unrolls_its_state():
    layer = nn.ConvLSTM(0, 4, seed=0)
    h, c = normal(2, 5, 6, 4).astype("f4"), normal(2, 5, 6, 4, seed=1).astype("f4")
    outputs, state = layer(None, (h, c), steps=3)
    assert outputs.shape == (2, 3, 5, 6, 4)
    assert layer.weight_input is None
    again, _ = layer(None, state, steps=1)
    four, _ = layer(None, (h, c), steps=4)
    np.testing.assert_allclose(again.data[:, 0], four.data[:, 3], atol=1e-6)


def test_encoders_state_carries_gradients_into_a_forecaster():
    encoder, forecaster = nn.ConvLSTM(1, 4, seed=0), nn.ConvLSTM(0, 4, seed=1)
    _, state = encoder(normal(2, 3, 5, 6, 1).astype("f4"))
    outputs, _ = forecaster(None, state, steps=2)
    ops.mean(outputs * outputs).backward()
    assert all(np.abs(p.grad).max() > 0 for p in encoder.parameters())


def test_it_starts_by_remembering():
    bias = nn.ConvLSTM(1, 3).bias.data
    np.testing.assert_array_equal(bias, [0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0])


@pytest.mark.parametrize(
    ("layer", "arguments", "sentence"),
    [
        ((0, 2), (None, None, 3), "without an input expected in_channels=0, a state and steps"),
        ((1, 2), (None, "state", 3), "found in_channels=1"),
        ((0, 2), (None, "state", None), "steps=None"),
        ((1, 3), ("x", "state", None), r"state \(h, c\) of shape \(1, 4, 4, 3\).*\(1, 4, 4, 2\)"),
        ((0, 3), (None, "state", 2), r"state \(h, c\) of shape \(1, 4, 4, 3\)"),
    ],
)
def test_wrong_calls_are_refused(layer, arguments, sentence):
    x, state, steps = arguments
    x = np.zeros((1, 2, 4, 4, 1), np.float32) if x else None
    state = (np.zeros((1, 4, 4, 2), np.float32),) * 2 if state else None
    with pytest.raises(ShapeError, match=sentence):
        nn.ConvLSTM(*layer)(x, state, steps)


def test_even_kernel_is_refused():
    with pytest.raises(ShapeError, match="expected an odd kernel_size, found 4"):
        nn.ConvLSTM(1, 2, 4)


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


def test_without_input_it_unrolls_its_state_trajgru():
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
