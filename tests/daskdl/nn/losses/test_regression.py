"""Losses of numbers as modules."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import ShapeError
from daskdl.ops import losses as ops
from tests.daskdl.gradients import normal
from tests.daskdl.lossmeans import check_module


@pytest.mark.parametrize(
    ("loss", "operation"),
    [
        (nn.MSELoss(), ops.squared_error),
        (nn.L1Loss(), ops.absolute_error),
        (nn.HuberLoss(), ops.huber),
        (nn.HuberLoss(0.5), partial(ops.huber, delta=0.5)),
        (nn.SmoothL1Loss(), ops.smooth_l1),
        (nn.SmoothL1Loss(beta=0.5), partial(ops.smooth_l1, beta=0.5)),
        (nn.MAPELoss(), ops.percentage_error),
        (nn.MSLELoss(), ops.squared_log_error),
    ],
)
def test_each_is_its_operation(loss, operation):
    check_module(loss, operation, normal(4, 3), normal(4, 3, seed=1))


def test_shapes_have_to_agree():
    """Without this, numpy would broadcast (N, 1) with (N,) to (N, N)."""
    with pytest.raises(ShapeError, match=r"the prediction's shape \(3, 1\), found float64 \(3,\)"):
        nn.MSELoss()(np.zeros((3, 1)), np.zeros(3))
