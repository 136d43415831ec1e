"""Losses of numbers, classes, pairs and images."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import SettingsError, ShapeError
from daskdl.ops import losses as ops
from tests.daskdl.gradients import check_gradient, normal
from tests.daskdl.lossmeans import check_module

RNG = np.random.default_rng(0)
A, B, C = EMBEDDINGS = tuple(normal(4, 3, seed=seed) for seed in range(3))
SHARES, YES = RNG.random((4, 3)), np.round(RNG.random((4, 3)))
LABELS, SIGNS = np.array([0, 2, 1, 1]), np.array([1, -1, -1, 1])
SETS = np.array([[0, 2], [1, -1], [-1, -1], [2, 1]])
LABELS_CTC = np.array([[1, 2], [1, 1], [2, -1]])
MASKS, PICTURES = RNG.random((3, 4, 2)), RNG.random((2, 2, 12, 13, 2))
COUNTS = np.arange(12.0).reshape(4, 3)
WEIGHT = {"weight": (1.0, 2.0, 0.5)}
MARGIN = {"margin": 0.5}
#: Losses, their operations, a prediction and a target, and settings to add to the defaults.
CASES = [
    ("BCELoss", ops.binary_cross_entropy, (SHARES, YES), [WEIGHT]),
    ("BCEWithLogitsLoss", ops.binary_cross_entropy_with_logits, (A, YES),
     [WEIGHT, {"pos_weight": (3.0, 1.0, 2.0)}]),
    ("MultiLabelSoftMarginLoss", ops.binary_cross_entropy_with_logits, (A, YES), [WEIGHT]),
    ("CrossEntropyLoss", ops.cross_entropy, (A, LABELS),
     [WEIGHT, {"smoothing": 0.2}, {"ignore_index": 1}]),
    ("FocalLoss", ops.focal, (A, LABELS), [WEIGHT, {"gamma": 1.0}]),
    ("NLLLoss", ops.nll, (A, LABELS), [WEIGHT, {"ignore_index": 1}]),
    ("CTCLoss", ops.ctc, (normal(3, 5, 4), LABELS_CTC), [{"blank": 3}]),
    ("HingeLoss", ops.hinge, (A, np.sign(B)), [MARGIN, {"squared": True}]),
    ("SoftMarginLoss", ops.soft_margin, (A, np.sign(B)), []),
    ("HingeEmbeddingLoss", ops.hinge_embedding, (A, np.sign(B)), [MARGIN]),
    ("MultiMarginLoss", ops.multi_margin, (A, LABELS), [{"p": 2}, MARGIN, WEIGHT]),
    ("MultiLabelMarginLoss", ops.multilabel_margin, (A, SETS), []),
    ("BoundaryLoss", ops.boundary, (normal(3, 4, 5, 3), RNG.integers(0, 3, (3, 4, 5))), []),
    ("DiceLoss", ops.dice, (MASKS, np.round(MASKS[::-1])), [{"smooth": 0.1}, {"squared": True}]),
    ("SSIMLoss", ops.ssim, tuple(PICTURES),
     [{"data_range": 2.0}, {"window": 5}, {"sigma": 1.0}]),
    ("MarginRankingLoss", ops.margin_ranking, ((A, B), np.sign(C)), [MARGIN]),
    ("CosineEmbeddingLoss", ops.cosine_embedding, ((A, A + 0.3 * B), SIGNS), [MARGIN]),
    ("TripletMarginLoss", ops.triplet, (EMBEDDINGS,),
     [{"margin": 2.0}, {"p": 1.0}, {"swap": True}]),
    ("KLDivLoss", ops.kl_divergence, (A, np.abs(A)), [{"log_target": True}]),
    ("GaussianKLLoss", ops.gaussian_kl, ((A, B),), []),
    ("PoissonNLLLoss", ops.poisson_nll, (np.abs(A), COUNTS),
     [{"log": False}, {"full": True}, {"log": False, "eps": 1.0}]),
    ("GaussianNLLLoss", ops.gaussian_nll, ((A, np.abs(B)), C), [{"eps": 0.8}]),
    ("MSELoss", ops.squared_error, (A, B), []),
    ("L1Loss", ops.absolute_error, (A, B), []),
    ("HuberLoss", ops.huber, (A, B), [{"delta": 0.5}]),
    ("SmoothL1Loss", ops.smooth_l1, (A, B), [{"beta": 0.5}]),
    ("MAPELoss", ops.percentage_error, (A, B), []),
    ("MSLELoss", ops.squared_log_error, (A, B), []),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "operation", "arrays", "settings"),
    [(*case, settings) for *case, several in CASES for settings in ({}, *several)],
)
def test_a_loss_is_its_operation(name, operation, arrays, settings):
    check_module(getattr(nn, name)(**settings), partial(operation, **settings), *arrays)


@pytest.mark.parametrize("loss", [nn.MSELoss(), nn.PrecipitationLoss()])
def test_shapes_have_to_agree(loss):
    """Without this, numpy would broadcast (N, 1) with (N,) to (N, N)."""
    with pytest.raises(ShapeError, match=r"the prediction's shape \(3, 1\), found float64 \(3,\)"):
        loss(np.zeros((3, 1)), np.zeros(3))


def test_ctc_takes_lengths_and_impossible_labels():
    loss = nn.CTCLoss(zero_infinity=True)
    lengths = np.array([4, 2, 5])
    expected = ops.ctc(normal(3, 5, 4), LABELS_CTC, lengths=lengths, zero_infinity=True)
    assert float(loss(normal(3, 5, 4), LABELS_CTC, lengths=lengths)) == float(expected)
    assert np.isfinite(float(expected))
    assert np.isinf(float(nn.CTCLoss()(normal(3, 5, 4), LABELS_CTC, lengths=lengths)))


def test_precipitation_uses_its_settings_and_pickles():
    loss = nn.PrecipitationLoss((1,), (1, 3), squared=2.0, absolute=0.0)
    target, prediction = np.array([[0.0, 2.0, np.nan]]), np.array([[1.0, 1.0, 1.0]])
    for same in (loss, pickle.loads(pickle.dumps(loss))):
        assert float(same(prediction, target)) == pytest.approx(2 * (1 + 3) / 3)
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


def test_a_missing_target_is_refused():
    with pytest.raises(SettingsError, match="MSELoss: expected a target, found none"):
        nn.MSELoss()(np.zeros((2, 3), np.float32))


def test_multi_loss_is_the_weighted_sum_of_its_losses():
    a, b = normal(4, 3), normal(4, 3, seed=1)

    def expected(x, y, sample_weight=None):
        total = 2.0 * ops.squared_error(x, y, sample_weight=sample_weight)
        return total + 0.5 * ops.huber(x, y, delta=0.3, sample_weight=sample_weight)

    loss = nn.MultiLoss([nn.MSELoss(), nn.HuberLoss(0.3)], [2.0, 0.5])
    check_module(loss, expected, a, b)
    check_gradient(lambda x: loss(x, b), a)


def test_weights_are_1_and_losses_may_nest():
    a, b = normal(4, 3), normal(4, 3, seed=1)
    once = nn.MultiLoss([nn.MSELoss(), nn.L1Loss()])
    twice = nn.MultiLoss([once, once], [0.5, 0.5])
    assert float(twice(a, b)) == pytest.approx(float(nn.MSELoss()(a, b) + nn.L1Loss()(a, b)))


def test_paired_losses_get_one_head_each():
    numbers, logits = normal(4, 2), normal(4, 3)
    target, labels = normal(4, 2, seed=1), np.array([0, 2, 1, 1])
    loss = nn.MultiLoss([nn.MSELoss(), nn.CrossEntropyLoss()], (1.0, 0.1), paired=True)
    total = loss((numbers, logits), (target, labels))
    expected = ops.squared_error(numbers, target) + 0.1 * ops.cross_entropy(logits, labels)
    assert float(total) == pytest.approx(float(expected))
    with pytest.raises(ShapeError, match="MultiLoss: expected a tuple of 2 targets, found ndarray"):
        loss((numbers, logits), target)
    with pytest.raises(ShapeError, match="MultiLoss: expected a tuple of 2 predictions"):
        loss(numbers, (target, labels))


def test_one_head_each_without_paired_is_refused():
    loss = nn.MultiLoss([nn.MSELoss(), nn.CrossEntropyLoss()])
    pairs = (normal(4, 2), normal(4, 3)), (normal(4, 2), np.array([0, 2, 1, 1]))
    with pytest.raises(ShapeError, match=r"for all losses, found 2 and 2; with paired=True each"):
        loss(*pairs)


@pytest.mark.parametrize("arguments", [([],), ([nn.MSELoss()], [1.0, 2.0])])
def test_each_loss_needs_a_weight(arguments):
    with pytest.raises(SettingsError, match="a weight for each of at least 1 loss, found"):
        nn.MultiLoss(*arguments)


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


def test_a_loss_without_forward_says_so():
    with pytest.raises(NotImplementedError, match="Loss has to define forward"):
        nn.Loss()(normal(1), normal(1))


def test_every_module_is_a_loss_and_has_no_parameters():
    for name in nn.losses.__all__:
        loss = getattr(nn, name)
        assert issubclass(loss, nn.Loss)
        assert nn.Module.registry[name] is loss
        if name != "MultiLoss":
            assert loss().flat.size == 0


def test_a_trainers_target_may_be_anything_for_triplets():
    loss = nn.TripletMarginLoss()
    assert float(loss(EMBEDDINGS, np.zeros(4))) == float(loss(EMBEDDINGS))
