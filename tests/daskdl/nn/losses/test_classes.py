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


@pytest.mark.parametrize("settings", [{}, {"smooth": 0.1}, {"squared": True}])
def test_it_is_its_operation_of_images(settings):
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


EMBEDDINGS = tuple(normal(4, 3, seed=seed) for seed in range(3))
SIGNS = np.array([1, -1, -1, 1])


@pytest.mark.parametrize("settings", [{}, {"margin": 0.5}])
def test_two(settings):
    pair = EMBEDDINGS[:2]
    ranked = np.sign(EMBEDDINGS[2])
    ranking = partial(ops.margin_ranking, **settings)
    check_module(nn.MarginRankingLoss(**settings), ranking, pair, ranked)
    similar = (EMBEDDINGS[0], EMBEDDINGS[0] + 0.3 * EMBEDDINGS[1])
    cosine = partial(ops.cosine_embedding, **settings)
    check_module(nn.CosineEmbeddingLoss(**settings), cosine, similar, SIGNS)


@pytest.mark.parametrize("settings", [{}, {"margin": 2.0}, {"p": 1.0}, {"swap": True}])
def test_three(settings):
    check_module(nn.TripletMarginLoss(**settings), partial(ops.triplet, **settings), EMBEDDINGS)


def test_a_trainers_target_may_be_anything_for_triplets():
    loss = nn.TripletMarginLoss()
    assert float(loss(EMBEDDINGS, np.zeros(4))) == float(loss(EMBEDDINGS))


def test_another_number_of_predictions():
    with pytest.raises(ShapeError, match=r"Triplet.*: expected a tuple of 3 .* found 2 of"):
        nn.TripletMarginLoss()(EMBEDDINGS[:2])


@pytest.mark.parametrize("settings", [{}, {"log_target": True}])
def test_it_is_its_operation_of_numbers(settings):
    target = np.abs(normal(4, 3))
    loss = nn.KLDivLoss(**settings)
    check_module(loss, partial(ops.kl_divergence, **settings), normal(4, 3), target)


def test_of_normal_distributions_it_takes_mean_and_log_variance():
    check_module(nn.GaussianKLLoss(), ops.gaussian_kl, (normal(4, 3), normal(4, 3, seed=1)))


@pytest.mark.parametrize(
    "settings", [{}, {"log": False}, {"full": True}, {"log": False, "eps": 1.0}]
)
def test_poisson(settings):
    rate, counts = np.abs(normal(4, 3)), np.arange(12.0).reshape(4, 3)
    check_module(nn.PoissonNLLLoss(**settings), partial(ops.poisson_nll, **settings), rate, counts)


@pytest.mark.parametrize("settings", [{}, {"eps": 0.8}])
def test_gauss(settings):
    prediction = normal(4, 3), np.abs(normal(4, 3, seed=1))
    loss = nn.GaussianNLLLoss(**settings)
    check_module(loss, partial(ops.gaussian_nll, **settings), prediction, normal(4, 3, seed=2))


def test_gauss_wants_mean_and_variance():
    with pytest.raises(ShapeError, match=r"GaussianNLLLoss: .* tuple of 2 .* found shape \(4, 3\)"):
        nn.GaussianNLLLoss()(normal(4, 3), normal(4, 3))


@pytest.mark.parametrize(
    ("loss", "operation"),
    [
        (nn.MSELoss(), ops.squared_error),
        (nn.L1Loss(), ops.absolute_error),
        (nn.HuberLoss(), ops.huber),
        (nn.HuberLoss(0.5), partial(ops.huber, delta=0.5)),
        (nn.SmoothL1Loss(), ops.smooth_l1),
        (nn.SmoothL1Loss(beta=0.5), partial(ops.smooth_l1, beta=0.5)),
        (nn.MAPELoss(), ops.percentage_error),
        (nn.MSLELoss(), ops.squared_log_error),
    ],
)
def test_each_is_its_operation_of_numbers(loss, operation):
    check_module(loss, operation, normal(4, 3), normal(4, 3, seed=1))


def test_shapes_have_to_agree_of_numbers():
    """Without this, numpy would broadcast (N, 1) with (N,) to (N, N)."""
    with pytest.raises(ShapeError, match=r"the prediction's shape \(3, 1\), found float64 \(3,\)"):
        nn.MSELoss()(np.zeros((3, 1)), np.zeros(3))
