"""The loss of rain maps as a module."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import ShapeError
from tests.daskdl.gradients import check_gradient


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
