"""Margins between classes as modules."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from daskdl import nn
from daskdl.ops import losses as ops
from tests.daskdl.gradients import normal
from tests.daskdl.lossmeans import check_module


@pytest.mark.parametrize("settings", [{}, {"p": 2}, {"margin": 0.5}, {"weight": (1.0, 2.0, 0.5)}])
def test_one_label(settings):
    loss = nn.MultiMarginLoss(**settings)
    operation = partial(ops.multi_margin, **settings)
    check_module(loss, operation, normal(4, 3), np.array([0, 2, 1, 1]))


def test_several_labels():
    labels = np.array([[0, 2], [1, -1], [-1, -1], [2, 1]])
    check_module(nn.MultiLabelMarginLoss(), ops.multilabel_margin, normal(4, 3), labels)
