"""Losses of yes and no as modules."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from daskdl import nn
from daskdl.ops import losses as ops
from tests.daskdl.gradients import normal
from tests.daskdl.lossmeans import check_module

TARGET = np.round(np.random.default_rng(0).random((4, 3)))


@pytest.mark.parametrize("settings", [{}, {"weight": (1.0, 2.0, 0.5)}])
def test_probabilities(settings):
    p = np.random.default_rng(1).random((4, 3))
    check_module(nn.BCELoss(**settings), partial(ops.binary_cross_entropy, **settings), p, TARGET)


@pytest.mark.parametrize("settings", [{}, {"weight": (1.0, 2.0, 0.5)}])
def test_logits(settings):
    operation = partial(ops.binary_cross_entropy_with_logits, **settings)
    check_module(nn.BCEWithLogitsLoss(**settings), operation, normal(4, 3), TARGET)
    check_module(nn.MultiLabelSoftMarginLoss(**settings), operation, normal(4, 3), TARGET)


def test_what_is_true_may_weigh_more():
    operation = partial(ops.binary_cross_entropy_with_logits, pos_weight=(3.0, 1.0, 2.0))
    loss = nn.BCEWithLogitsLoss(pos_weight=(3.0, 1.0, 2.0))
    check_module(loss, operation, normal(4, 3), TARGET)
