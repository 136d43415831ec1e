"""Losses of images, as modules."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import ShapeError
from daskdl.ops import losses as ops
from tests.daskdl.gradients import check_gradient
from tests.daskdl.lossmeans import check_module


@pytest.mark.parametrize("settings", [{}, {"smooth": 0.1}, {"squared": True}])
def test_it_is_its_operation(settings):
    p = np.random.default_rng(0).random((3, 4, 2))
    check_module(nn.DiceLoss(**settings), partial(ops.dice, **settings), p, np.round(p[::-1]))


def test_precipitation_uses_its_settings_and_pickles():
    loss = nn.PrecipitationLoss((1,), (1, 3), squared=2.0, absolute=0.0)
    target, prediction = np.array([[0.0, 2.0, np.nan]]), np.array([[1.0, 1.0, 1.0]])
    for kept in (loss, pickle.loads(pickle.dumps(loss))):
        assert float(kept(prediction, target)) == pytest.approx(2 * (1 + 3) / 3)
    check_gradient(lambda p: loss(p, target), prediction)


def test_default_weights_grow_with_the_rain():
    loss = nn.PrecipitationLoss(absolute=0.0)
    target = np.array([0.0, 3, 7, 20, 50], np.float32)[:, None]
    values = [float(loss(t[None] + 1, t[None])) for t in target]
    assert values == [1, 2, 5, 10, 30]


@pytest.mark.parametrize(
    ("thresholds", "weights"), [((1, 2), (1, 2)), ((2, 1), (1, 2, 3)), ((), ())]
)
def test_precipitation_refuses_settings_that_do_not_fit(thresholds, weights):
    with pytest.raises(ShapeError, match="one more weight than thresholds, found"):
        nn.PrecipitationLoss(thresholds, weights)


def test_shapes_have_to_agree():
    with pytest.raises(ShapeError, match=r"the prediction's shape \(3, 1\), found float64 \(3,\)"):
        nn.PrecipitationLoss()(np.zeros((3, 1)), np.zeros(3))


@pytest.mark.parametrize("settings", [{}, {"data_range": 2.0}, {"window": 5}, {"sigma": 1.0}])
def test_it_is_its_operation_ssim(settings):
    x, y = np.random.default_rng(0).random((2, 2, 12, 13, 2))
    check_module(nn.SSIMLoss(**settings), partial(ops.ssim, **settings), x, y)
