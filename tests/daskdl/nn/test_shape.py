"""Layers that move numbers."""

from __future__ import annotations

import numpy as np

from daskdl import nn
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
