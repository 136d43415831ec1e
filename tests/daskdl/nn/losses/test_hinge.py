"""Hinge losses as modules."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from daskdl import nn
from daskdl.ops import losses as ops
from tests.daskdl.gradients import normal
from tests.daskdl.lossmeans import check_module


@pytest.mark.parametrize(
    ("loss", "operation"),
    [
        (nn.HingeLoss(), ops.hinge),
        (nn.HingeLoss(margin=0.5), partial(ops.hinge, margin=0.5)),
        (nn.HingeLoss(squared=True), partial(ops.hinge, squared=True)),
        (nn.SoftMarginLoss(), ops.soft_margin),
        (nn.HingeEmbeddingLoss(), ops.hinge_embedding),
        (nn.HingeEmbeddingLoss(0.5), partial(ops.hinge_embedding, margin=0.5)),
    ],
)
def test_each_is_its_operation(loss, operation):
    check_module(loss, operation, normal(4, 3), np.sign(normal(4, 3, seed=1)))
