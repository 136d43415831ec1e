"""Several losses together, a loss of one's own, and losses of pairs."""

from __future__ import annotations

from functools import partial

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
