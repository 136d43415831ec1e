"""Likelihoods as modules."""

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
