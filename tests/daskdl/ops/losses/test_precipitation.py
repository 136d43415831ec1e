"""Precipitation-weighted errors by hand, their gradients, and missing targets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from daskdl import ops
from daskdl.errors import SettingsError
from daskdl.tensor import Tensor
from tests.daskdl.gradients import check_gradient, normal

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


def test_prediction_that_is_nan_where_the_target_is_valid_shows():
    prediction = np.array([[np.nan, 1.0]])
    assert np.isnan(float(ops.precipitation(prediction, np.ones((1, 2)), **SETTINGS)))


def test_all_missing_is_zero():
    prediction = Tensor(np.ones((2, 3)), requires_grad=True)
    loss = ops.precipitation(prediction, np.full((2, 3), np.nan), **SETTINGS)
    loss.backward()
    assert float(loss) == 0
    assert (prediction.grad == 0).all()


def test_loss_is_the_mean_over_samples_so_that_shards_add_up():
    target, prediction = rain((4, 3, 5)), normal(4, 3, 5)
    parts = [
        float(ops.precipitation(prediction[i : i + 2], target[i : i + 2], **SETTINGS))
        for i in (0, 2)
    ]
    whole = float(ops.precipitation(prediction, target, **SETTINGS))
    assert whole == pytest.approx(np.mean(parts), rel=1e-12)


def test_precipitation_of_many_float32_pixels_is_accurate():
    """A batch of radar sequences has millions of pixels; the sum must not lose their tail."""
    target = rain((8, 12, 128, 128), missing=0.1).astype("f4")
    prediction = normal(*target.shape).astype("f4")
    exact = float(ops.precipitation(prediction.astype(float), target.astype(float), **SETTINGS))
    loss = ops.precipitation(prediction, target, **SETTINGS)
    assert loss.dtype == np.float32
    assert float(loss) == pytest.approx(exact, rel=2e-6)


@pytest.mark.parametrize(("thresholds", "weights"), [([2, 5], [1, 7]), ([5, 2], [1, 2, 3])])
def test_weights_have_to_fit_the_thresholds(thresholds, weights):
    steps = {"thresholds": np.array(thresholds), "weights": np.array(weights)}
    with pytest.raises(SettingsError, match="one more weight than thresholds, found"):
        ops.precipitation(np.ones((1, 2)), np.ones((1, 2)), **steps, squared=1.0, absolute=0.0)
