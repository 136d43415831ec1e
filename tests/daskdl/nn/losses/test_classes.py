"""Losses of classes, as modules."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import ShapeError
from daskdl.ops import losses as ops
from tests.daskdl.gradients import check_gradient, normal
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


LABELS_CTC = np.array([[1, 2], [1, 1], [2, -1]])


@pytest.mark.parametrize("settings", [{}, {"blank": 3}])
def test_it_is_its_operation(settings):
    check_module(nn.CTCLoss(**settings), partial(ops.ctc, **settings), normal(3, 5, 4), LABELS_CTC)


def test_lengths_and_what_is_impossible():
    loss = nn.CTCLoss(zero_infinity=True)
    lengths = np.array([4, 2, 5])
    expected = ops.ctc(normal(3, 5, 4), LABELS_CTC, lengths=lengths, zero_infinity=True)
    assert float(loss(normal(3, 5, 4), LABELS_CTC, lengths=lengths)) == float(expected)
    assert np.isfinite(float(expected))
    assert np.isinf(float(nn.CTCLoss()(normal(3, 5, 4), LABELS_CTC, lengths=lengths)))


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


@pytest.mark.parametrize("settings", [{}, {"p": 2}, {"margin": 0.5}, {"weight": (1.0, 2.0, 0.5)}])
def test_one_label(settings):
    loss = nn.MultiMarginLoss(**settings)
    operation = partial(ops.multi_margin, **settings)
    check_module(loss, operation, normal(4, 3), np.array([0, 2, 1, 1]))


def test_several_labels():
    labels = np.array([[0, 2], [1, -1], [-1, -1], [2, 1]])
    check_module(nn.MultiLabelMarginLoss(), ops.multilabel_margin, normal(4, 3), labels)
