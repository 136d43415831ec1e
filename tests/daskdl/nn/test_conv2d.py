"""The convolution layer."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import ShapeError
from tests.daskdl.nn.layers import check_layer


@pytest.mark.parametrize(
    ("arguments", "size", "parameters"),
    [
        ({"kernel_size": 3}, (7, 6), 9 * 8 * 9 + 9),
        ({"kernel_size": 3, "padding": "same"}, (9, 8), 9 * 8 * 9 + 9),
        ({"kernel_size": 5, "padding": 2, "bias": False}, (9, 8), 25 * 8 * 9),
        ({"kernel_size": 1}, (9, 8), 8 * 9 + 9),
        ({"kernel_size": (2, 4), "padding": "same"}, (9, 8), 8 * 8 * 9 + 9),
        ({"kernel_size": (4, 1), "stride": (2, 3), "padding": (1, 0)}, (4, 3), 4 * 8 * 9 + 9),
    ],
)
def test_layer(arguments, size, parameters, tmp_path):
    check_layer(
        lambda: nn.Conv2d(8, 9, seed=1, **arguments),
        (2, 9, 8, 8),
        (2, *size, 9),
        tmp_path,
        parameters=parameters,
        wrong_shape=(2, 9, 8, 7),
        sentence=r"expected an input of shape \(N, H, W, 8\), channels last, found \(2, 9, 8, 7\)",
    )


def test_missing_batch_axis_is_refused():
    with pytest.raises(ShapeError, match=r"expected .* \(N, H, W, 3\).*found \(9, 8, 3\)"):
        nn.Conv2d(3, 4, 3)(np.zeros((9, 8, 3), np.float32))


def test_image_smaller_than_the_kernel_is_refused():
    with pytest.raises(ShapeError, match=r"at least \(5, 5\) after padding, found \(4, 9\)"):
        nn.Conv2d(3, 4, 5)(np.zeros((1, 4, 9, 3), np.float32))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"kernel_size": 3, "stride": 2, "padding": "same"}, 'padding="same" expects stride 1'),
        ({"kernel_size": (3, 3, 3)}, r"Conv2d\.kernel_size: expected .* found \(3, 3, 3\)"),
        ({"kernel_size": 3, "padding": -1}, r"Conv2d\.padding: expected .* found -1"),
        ({"kernel_size": 3, "padding": "valid"}, r"Conv2d\.padding: expected .* found 'valid'"),
        ({"kernel_size": 3, "stride": 0}, r"Conv2d\.stride: expected .* found 0"),
        ({"kernel_size": 0}, r"Conv2d\.kernel_size: expected .* found 0"),
    ],
)
def test_impossible_arguments_are_refused(arguments, sentence):
    with pytest.raises(ShapeError, match=sentence):
        nn.Conv2d(3, 4, **arguments)


def test_same_padding_under_an_even_kernel_adds_below_and_to_the_right():
    assert nn.Conv2d(1, 1, (4, 2), padding="same").pad == (1, 2, 0, 1)


def test_initial_weights_are_pytorchs(torch):
    """U(-b, b), b = 1 / sqrt(fan_in), for weights and bias."""
    ours = nn.Conv2d(16, 32, 3, seed=0)
    theirs = torch.nn.Conv2d(16, 32, 3)
    for mine, other in ((ours.weight, theirs.weight), (ours.bias, theirs.bias)):
        other = other.detach().numpy()
        assert abs(mine.data).max() <= 1 / 12
        assert mine.data.std() == pytest.approx(other.std(), rel=0.3)
