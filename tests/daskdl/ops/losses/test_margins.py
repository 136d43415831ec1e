"""Losses of margins, of probabilities and of rain: edges and missing values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from daskdl import ops
from daskdl.ops import losses
from daskdl.tensor import Tensor
from tests.daskdl.gradients import check_gradient, normal


def test_labels_of_a_sample_end_at_the_first_minus_1():
    x = normal(2, 4)
    padded = np.array([[2, -1, -1, -1], [0, 3, -1, -1]])
    expected = float(losses.multilabel_margin(x, padded))
    assert float(losses.multilabel_margin(x, padded[:, :3])) == expected
    padded[:, 3] = 1  # after the end, as PyTorch ignores it
    assert float(losses.multilabel_margin(x, padded)) == expected


def test_embeddings_of_zeros_have_a_gradient():
    zeros = Tensor(np.zeros((2, 3)), requires_grad=True)
    losses.cosine_embedding(zeros, zeros, np.array([1, -1])).backward()
    losses.triplet(zeros, zeros, zeros, eps=0.0).backward()
    assert np.isfinite(zeros.grad).all()


def test_certain_probabilities_cost_100_at_most():
    p = Tensor(np.array([0.0, 1.0, 0.0, 1.0]), requires_grad=True)
    loss = losses.binary_cross_entropy(p, np.array([1.0, 0.0, 0.0, 1.0]))
    loss.backward()
    assert float(loss) == pytest.approx(50)
    assert np.isfinite(p.grad).all()


SETTINGS = {
    "thresholds": np.array([0.5, 1.0], np.float32),
    "weights": np.array([1, 2, 5], np.float32),
    "squared": 1.0,
    "absolute": 0.5,
}


def rain(shape, missing=0.2, seed=0):
    """Return a target with some values missing."""
    rng = np.random.default_rng([seed, *shape])
    target = rng.exponential(size=shape)
    target[rng.random(shape) < missing] = np.nan
    return target


@given(
    shape=hnp.array_shapes(max_dims=4, max_side=4),
    squared=st.sampled_from([0.0, 1.0, 2.5]),
    absolute=st.sampled_from([0.0, 1.0, 0.5]),
)
def test_precipitation_gradient(shape, squared, absolute):
    target = rain(shape)
    settings = {**SETTINGS, "squared": squared, "absolute": absolute}
    check_gradient(lambda p: ops.precipitation(p, target, **settings), normal(*shape))


def test_precipitation_by_hand():
    """Weights 1, 2, 5 by the target: 0 -> 1, 0.5 -> 2 (a threshold is reached), 3 -> 5."""
    target = np.array([[0.0, 0.5, 3.0, np.nan]])
    prediction = target + np.array([[1.0, -2.0, 0.5, 7.0]])
    prediction[0, 3] = 7.0
    expected = (1 * (1 + 0.5 * 1) + 2 * (4 + 0.5 * 2) + 5 * (0.25 + 0.5 * 0.5)) / 4
    assert float(ops.precipitation(prediction, target, **SETTINGS)) == pytest.approx(expected)


def test_missing_targets_count_nothing_even_where_the_prediction_is_not_finite():
    target = np.array([[1.0, np.nan, np.nan]])
    prediction = Tensor(np.array([[2.0, np.nan, np.inf]]), requires_grad=True)
    loss = ops.precipitation(prediction, target, **SETTINGS)
    loss.backward()
    assert np.isfinite(float(loss))
    assert np.isfinite(prediction.grad).all()
    assert (prediction.grad[0, 1:] == 0).all()


def test_all_missing_is_zero():
    prediction = Tensor(np.ones((2, 3)), requires_grad=True)
    loss = ops.precipitation(prediction, np.full((2, 3), np.nan), **SETTINGS)
    loss.backward()
    assert float(loss) == 0
    assert (prediction.grad == 0).all()
