"""Losses of classes as modules."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import ShapeError
from daskdl.ops import losses as ops
from tests.daskdl.gradients import check_gradient, normal
from tests.daskdl.lossmeans import check_module

LABELS = np.array([0, 2, 1, 1])


@pytest.mark.parametrize(
    "settings", [{}, {"weight": (1.0, 2.0, 0.5)}, {"smoothing": 0.2}, {"ignore_index": 1}]
)
def test_cross_entropy(settings):
    loss = nn.CrossEntropyLoss(**settings)
    check_module(loss, partial(ops.cross_entropy, **settings), normal(4, 3), LABELS)
    check_gradient(lambda x: loss(x, LABELS), normal(4, 3))


@pytest.mark.parametrize("settings", [{}, {"weight": (1.0, 2.0, 0.5)}, {"ignore_index": 1}])
def test_nll(settings):
    check_module(nn.NLLLoss(**settings), partial(ops.nll, **settings), normal(4, 3), LABELS)


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (np.zeros(3, int), r"integer labels of shape \(4,\), found int64 \(3,\)"),
        (np.zeros(4), r"integer labels of shape \(4,\), found float64"),
        (np.array([0, 1, 2, 3]), "labels from 0 to 2, found 3"),
        (np.array([0, -1, 2, 0]), "labels from 0 to 2, found -1"),
    ],
)
def test_labels_that_are_none(labels, sentence):
    with pytest.raises(ShapeError, match=sentence):
        nn.CrossEntropyLoss()(np.zeros((4, 3)), labels)
