"""Losses of several embeddings as modules."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import ShapeError
from daskdl.ops import losses as ops
from tests.daskdl.gradients import normal
from tests.daskdl.lossmeans import check_module

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
