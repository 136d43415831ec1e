"""Binary cross entropy against PyTorch: probabilities, logits, weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from daskdl import ops
from daskdl.errors import DataError, SettingsError, ShapeError
from daskdl.ops import losses
from daskdl.tensor import Tensor
from tests.daskdl.gradients import check_gradient, normal
from tests.daskdl.lossmeans import check_loss

SHAPES = hnp.array_shapes(max_dims=3, max_side=4)
DTYPES = st.sampled_from(["f4", "f8"])


def targets(shape, soft):
    """Return zeros and ones, or what lies between."""
    t = np.random.default_rng(3).random(shape)
    return t if soft else np.round(t)


@given(shape=SHAPES, dtype=DTYPES, soft=st.booleans(), weighted=st.booleans())
def test_probabilities(shape, dtype, soft, weighted, torch):
    weight = np.random.default_rng(4).random(shape[-1]) if weighted else None
    there = None if weight is None else torch.tensor(weight.astype(dtype))
    check_loss(
        torch,
        lambda *x, **k: losses.binary_cross_entropy(*x, weight=weight, **k),
        lambda p, t: torch.nn.functional.binary_cross_entropy(p, t, there, reduction="none"),
        np.random.default_rng(5).uniform(0.02, 0.98, shape),
        targets(shape, soft),
        dtype=dtype,
    )


@given(
    shape=SHAPES,
    dtype=DTYPES,
    soft=st.booleans(),
    weighted=st.booleans(),
    positive=st.sampled_from([None, "all alike", "by class"]),
    scale=st.sampled_from([1, 100]),
)
def test_logits(shape, dtype, soft, weighted, positive, scale, torch):
    rng = np.random.default_rng(4)
    weight = rng.random(shape[-1]) if weighted else None
    pos_weight = None
    if positive:
        pos_weight = 3 * rng.random(shape[-1] if positive == "by class" else ())
    there = [None if w is None else torch.tensor(w.astype(dtype)) for w in (weight, pos_weight)]
    check_loss(
        torch,
        lambda *x, **k: losses.binary_cross_entropy_with_logits(
            *x, weight=weight, pos_weight=pos_weight, **k
        ),
        lambda x, t: torch.nn.functional.binary_cross_entropy_with_logits(
            x, t, weight=there[0], pos_weight=there[1], reduction="none"
        ),
        scale * normal(*shape),
        targets(shape, soft),
        dtype=dtype,
    )


def test_certain_probabilities_cost_100_at_most():
    p = Tensor(np.array([0.0, 1.0, 0.0, 1.0]), requires_grad=True)
    loss = losses.binary_cross_entropy(p, np.array([1.0, 0.0, 0.0, 1.0]))
    loss.backward()
    assert float(loss) == pytest.approx(50)
    assert np.isfinite(p.grad).all()


def test_logits_that_are_not_finite_show():
    x = Tensor(np.array([np.nan, 1.0]), requires_grad=True)
    losses.binary_cross_entropy_with_logits(x, np.zeros(2)).backward()
    assert np.isnan(x.grad[0])
    assert np.isfinite(x.grad[1])


def test_what_is_no_probability_is_refused():
    with pytest.raises(DataError, match=r"from 0 to 1, found 1\.5; for logits there is"):
        losses.binary_cross_entropy(np.array([0.5, 1.5]), np.zeros(2))


@pytest.mark.parametrize("name", ["weight", "pos_weight"])
def test_weights_have_to_broadcast(name):
    with pytest.raises(ShapeError, match=rf"{name}: .* broadcasts with \(2, 3\), found \(2,\)"):
        losses.binary_cross_entropy_with_logits(
            np.zeros((2, 3)), np.zeros((2, 3)), **{name: [1, 2]}
        )


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
