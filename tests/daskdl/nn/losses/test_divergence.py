"""Kullback-Leibler divergence as a module."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from daskdl import nn
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
