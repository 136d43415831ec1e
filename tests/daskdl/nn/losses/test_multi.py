"""Weighted sums of losses."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import SettingsError, ShapeError
from daskdl.ops import losses as ops
from tests.daskdl.gradients import check_gradient, normal
from tests.daskdl.lossmeans import check_module


def test_it_is_the_weighted_sum_of_its_losses():
    a, b = normal(4, 3), normal(4, 3, seed=1)

    def expected(x, y, sample_weight=None):
        found = 2.0 * ops.squared_error(x, y, sample_weight=sample_weight)
        return found + 0.5 * ops.huber(x, y, delta=0.3, sample_weight=sample_weight)

    loss = nn.MultiLoss([nn.MSELoss(), nn.HuberLoss(0.3)], [2.0, 0.5])
    check_module(loss, expected, a, b)
    check_gradient(lambda x: loss(x, b), a)


def test_weights_are_1_and_losses_may_nest():
    a, b = normal(4, 3), normal(4, 3, seed=1)
    once = nn.MultiLoss([nn.MSELoss(), nn.L1Loss()])
    twice = nn.MultiLoss([once, once], [0.5, 0.5])
    assert float(twice(a, b)) == pytest.approx(float(nn.MSELoss()(a, b) + nn.L1Loss()(a, b)))


def test_a_head_each():
    numbers, logits = normal(4, 2), normal(4, 3)
    target, labels = normal(4, 2, seed=1), np.array([0, 2, 1, 1])
    loss = nn.MultiLoss([nn.MSELoss(), nn.CrossEntropyLoss()], (1.0, 0.1), paired=True)
    found = loss((numbers, logits), (target, labels))
    expected = ops.squared_error(numbers, target) + 0.1 * ops.cross_entropy(logits, labels)
    assert float(found) == pytest.approx(float(expected))
    with pytest.raises(ShapeError, match="MultiLoss: expected a tuple of 2 targets, found ndarray"):
        loss((numbers, logits), target)
    with pytest.raises(ShapeError, match="MultiLoss: expected a tuple of 2 predictions"):
        loss(numbers, (target, labels))


def test_a_head_each_without_saying_so_is_told():
    loss = nn.MultiLoss([nn.MSELoss(), nn.CrossEntropyLoss()])
    pairs = (normal(4, 2), normal(4, 3)), (normal(4, 2), np.array([0, 2, 1, 1]))
    with pytest.raises(ShapeError, match=r"for all losses, found 2 and 2; with paired=True each"):
        loss(*pairs)


@pytest.mark.parametrize("arguments", [([],), ([nn.MSELoss()], [1.0, 2.0])])
def test_a_weight_for_each(arguments):
    with pytest.raises(SettingsError, match="a weight for each of at least 1 loss, found"):
        nn.MultiLoss(*arguments)
