"""Losses as modules."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from daskdl import nn, ops
from daskdl.errors import ShapeError
from tests.daskdl.gradients import check_gradient, normal


def test_mse():
    a, b = normal(3, 4), normal(3, 4, seed=1)
    assert float(nn.MSELoss()(a, b)) == float(ops.squared_error(a, b))


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


@pytest.mark.parametrize("loss", [nn.MSELoss(), nn.PrecipitationLoss()])
def test_shapes_have_to_agree(loss):
    """Without this, numpy would broadcast (N, 1) with (N,) to (N, N)."""
    with pytest.raises(ShapeError, match=r"of the prediction's shape \(3, 1\), found \(3,\)"):
        loss(np.zeros((3, 1)), np.zeros(3))


def test_cross_entropy():
    logits, labels = normal(4, 3), np.array([0, 2, 1, 1])
    loss = nn.CrossEntropyLoss()
    assert float(loss(logits, labels)) == float(ops.cross_entropy(logits, labels))
    check_gradient(lambda t: loss(t, labels), logits)


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (np.zeros(3, int), r"integer labels of shape \(4,\), found int64 \(3,\)"),
        (np.zeros(4), r"integer labels of shape \(4,\), found float64"),
        (np.array([0, 1, 2, 3]), "labels from 0 to 2, found 0 to 3"),
        (np.array([0, -1, 2, 0]), "labels from 0 to 2, found -1 to 2"),
    ],
)
def test_cross_entropy_refuses_labels_that_are_none(labels, sentence):
    with pytest.raises(ShapeError, match=sentence):
        nn.CrossEntropyLoss()(np.zeros((4, 3)), labels)
