"""Losses of numbers and distributions, as modules."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import ShapeError
from daskdl.ops import losses as ops
from tests.daskdl.gradients import normal
from tests.daskdl.lossmeans import check_module


@pytest.mark.parametrize("settings", [{}, {"log_target": True}])
def test_it_is_its_operation(settings):
    target = np.abs(normal(4, 3))
    loss = nn.KLDivLoss(**settings)
    check_module(loss, partial(ops.kl_divergence, **settings), normal(4, 3), target)


def test_of_normal_distributions_it_takes_mean_and_log_variance():
    check_module(nn.GaussianKLLoss(), ops.gaussian_kl, (normal(4, 3), normal(4, 3, seed=1)))


@pytest.mark.parametrize(
    "settings", [{}, {"log": False}, {"full": True}, {"log": False, "eps": 1.0}]
)
def test_poisson(settings):
    rate, counts = np.abs(normal(4, 3)), np.arange(12.0).reshape(4, 3)
    check_module(nn.PoissonNLLLoss(**settings), partial(ops.poisson_nll, **settings), rate, counts)


@pytest.mark.parametrize("settings", [{}, {"eps": 0.8}])
def test_gauss(settings):
    prediction = normal(4, 3), np.abs(normal(4, 3, seed=1))
    loss = nn.GaussianNLLLoss(**settings)
    check_module(loss, partial(ops.gaussian_nll, **settings), prediction, normal(4, 3, seed=2))


def test_gauss_wants_mean_and_variance():
    with pytest.raises(ShapeError, match=r"GaussianNLLLoss: .* tuple of 2 .* found shape \(4, 3\)"):
        nn.GaussianNLLLoss()(normal(4, 3), normal(4, 3))


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
