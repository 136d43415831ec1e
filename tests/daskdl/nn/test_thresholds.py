"""Activations with thresholds beside PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import nn
from tests.daskdl.gradients import normal
from tests.daskdl.nn.beside_pytorch import check_like_pytorch


@pytest.mark.parametrize(
    ("name", "theirs", "arguments"),
    [
        ("Threshold", "Threshold", (0.2, -3.0)),
        ("HardTanh", "Hardtanh", (-0.4, 0.3)),
        ("HardShrink", "Hardshrink", (0.3,)),
        ("SoftShrink", "Softshrink", (0.3,)),
    ],
)
def test_agrees_with_pytorch(name, theirs, arguments, torch):
    x = np.append(normal(20), arguments).astype("f4")
    ours, theirs = getattr(nn, name)(*arguments), getattr(torch.nn, theirs)(*arguments)
    check_like_pytorch(torch, ours, theirs, x, channels=False)


def test_binary():
    x = np.array([-1, 0, 0.5, 2], "f4")
    y = nn.BinaryThreshold(0.5)(x).data
    np.testing.assert_array_equal(y, np.array([0, 0, 0, 1], "f4"))
