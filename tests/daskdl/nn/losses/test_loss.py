"""All losses share one contract, and a user's own keeps it."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import nn
from daskdl.ops import losses as ops
from tests.daskdl.gradients import check_gradient, normal


class CubicLoss(nn.Loss):
    """A user's own loss, of operations."""

    def forward(self, prediction, target, sample_weight=None):
        difference = prediction - target
        cube = difference * difference * difference
        return ops.absolute_error(cube, np.zeros(target.shape), sample_weight=sample_weight)


def test_a_users_loss():
    a, b = normal(3, 2), normal(3, 2, seed=1)
    assert float(CubicLoss()(a, b)) == pytest.approx(np.mean(np.abs(a - b) ** 3))
    check_gradient(lambda x: CubicLoss()(x, b, [1.0, 2.0, 0.0]), a)


def test_one_without_forward_says_so():
    with pytest.raises(NotImplementedError, match="Loss has to define forward"):
        nn.Loss()(normal(1), normal(1))


def test_every_module_is_a_loss_and_has_no_parameters():
    for name in nn.losses.__all__:
        made = getattr(nn, name)
        assert issubclass(made, nn.Loss)
        assert nn.Module.registry[name] is made
        if name != "MultiLoss":
            assert made().flat.size == 0
