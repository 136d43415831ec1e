"""Layers that move numbers."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import ShapeError
from tests.daskdl.gradients import normal
from tests.daskdl.nn.layers import check_layer


def test_flatten(tmp_path):
    check_layer(nn.Flatten, (2, 3, 4, 5), (2, 60), tmp_path)
    assert nn.Flatten()(np.zeros((0, 3, 4))).shape == (0, 12)


def test_space_to_depth(tmp_path):
    check_layer(
        lambda: nn.SpaceToDepth(2),
        (2, 3, 4, 6, 5),
        (2, 3, 2, 3, 20),
        tmp_path,
        wrong_shape=(2, 4, 5, 1),
        sentence=r"H and W in multiples of 2, found \(2, 4, 5, 1\)",
    )


def test_depth_to_space(tmp_path):
    check_layer(
        lambda: nn.DepthToSpace(2),
        (2, 2, 3, 20),
        (2, 4, 6, 5),
        tmp_path,
        wrong_shape=(2, 4, 6),
        sentence=r"C in multiples of 4, found \(2, 4, 6\)",
    )


def test_too_few_axes_are_refused(tmp_path):
    check_layer(
        lambda: nn.SpaceToDepth(1),
        (2, 3, 1),
        (2, 3, 1),
        tmp_path,
        wrong_shape=(4, 4),
        sentence=r"\(\.\.\., H, W, C\)",
    )


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        (nn.Reshape((4, 3)), lambda x: x.reshape(2, 4, 3)),
        (nn.Reshape((-1, 2)), lambda x: x.reshape(2, 6, 2)),
        (nn.Permute((2, 1)), lambda x: x.transpose(0, 2, 1)),
        (nn.Unsqueeze(1), lambda x: x[:, None]),
        (nn.Unsqueeze(-1), lambda x: x[..., None]),
        (nn.Select(1, -1), lambda x: x[:, -1]),
        (nn.Narrow(-1, 1, 2), lambda x: x[..., 1:3]),
        (nn.Flip(1), lambda x: x[:, ::-1]),
        (nn.Repeat(2), lambda x: np.stack([x, x], 1)),
    ],
)
def test_moves(layer, expected):
    x = normal(2, 3, 4)
    np.testing.assert_array_equal(layer(x).data, expected(x))


@pytest.mark.parametrize(
    ("layer", "sentence"),
    [
        (nn.Reshape((5, 2)), r"Reshape: expected samples of 10 .*, found \(3, 4\)"),
        (nn.Reshape((-1, 5)), r"Reshape: expected samples of 5 .*, found \(3, 4\)"),
        (nn.Permute((1,)), r"Permute: expected axes 1 to 2 .* found \(1,\)"),
        (nn.Squeeze(1), r"Squeeze: expected length 1 of axis 1, found shape \(2, 3, 4\)"),
        (nn.Unsqueeze(9), r"Unsqueeze: expected an axis from -4 to 3, found 9"),
        (nn.Select(1, 3), r"Select: expected axis 1 to have a place 3"),
        (nn.Select(3, 0), r"Select: expected an input with an axis 3"),
        (nn.Narrow(1, 2, 2), r"Narrow: expected axis 1 to have places 2 to 4"),
    ],
)
def test_what_does_not_fit_is_said(layer, sentence):
    with pytest.raises(ShapeError, match=sentence):
        layer(normal(2, 3, 4))
