"""Losses become means over samples: weights, cuts into shards, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp

from daskdl.errors import DataError, SettingsError, ShapeError
from daskdl.ops import losses
from daskdl.tensor import Tensor
from tests.daskdl.gradients import normal
from tests.daskdl.lossmeans import check_cut

LABELS = np.array([[0, 2, 1], [2, 2, 9], [9, 9, 9], [1, 9, 0]])
SIGNS = np.sign(normal(4, 3))
RATES = np.abs(normal(4, 3, seed=2))
SCORES = 1 / (1 + np.exp(-normal(4, 3)))

#: Each loss with arguments for four samples.
CASES = {
    "absolute_error": (losses.absolute_error, normal(4, 3), normal(4, 3, seed=1)),
    "squared_error": (losses.squared_error, normal(4, 3), normal(4, 3, seed=1)),
    "huber": (losses.huber, normal(4, 3), normal(4, 3, seed=1)),
    "smooth_l1": (losses.smooth_l1, normal(4, 3), normal(4, 3, seed=1)),
    "percentage_error": (losses.percentage_error, normal(4, 3), RATES),
    "squared_log_error": (losses.squared_log_error, RATES + 1, RATES),
    "poisson_nll": (losses.poisson_nll, normal(4, 3), RATES),
    "gaussian_nll": (losses.gaussian_nll, normal(4, 3), RATES + 0.1, normal(4, 3, seed=1)),
    "binary_cross_entropy": (losses.binary_cross_entropy, SCORES, RATES.clip(0, 1)),
    "binary_cross_entropy_with_logits": (
        losses.binary_cross_entropy_with_logits,
        normal(4, 3),
        RATES.clip(0, 1),
    ),
    "cross_entropy": (
        lambda *a, **k: losses.cross_entropy(
            *a, ignore_index=9, weight=[1, 2, 3], smoothing=0.1, **k
        ),
        normal(4, 3, 3),
        LABELS,
    ),
    "nll": (
        lambda *a, **k: losses.nll(*a, ignore_index=9, weight=[1, 2, 3], **k),
        normal(4, 3, 3),
        LABELS,
    ),
    "gaussian_kl": (losses.gaussian_kl, normal(4, 3), normal(4, 3, seed=1)),
    "kl_divergence": (losses.kl_divergence, normal(4, 2, 3), np.abs(normal(4, 2, 3))),
    "hinge": (losses.hinge, normal(4, 3), SIGNS),
    "soft_margin": (losses.soft_margin, normal(4, 3), SIGNS),
    "hinge_embedding": (losses.hinge_embedding, normal(4, 3), SIGNS),
    "multi_margin": (losses.multi_margin, normal(4, 3), np.array([0, 2, 1, 1])),
    "multilabel_margin": (losses.multilabel_margin, normal(4, 3), np.array([[0, -1]] * 4)),
    "margin_ranking": (losses.margin_ranking, normal(4, 3), normal(4, 3, seed=1), SIGNS),
    "cosine_embedding": (losses.cosine_embedding, normal(4, 3), normal(4, 3, seed=1), SIGNS[:, 0]),
    "triplet": (losses.triplet, normal(4, 3), normal(4, 3, seed=1), normal(4, 3, seed=2)),
    "focal": (losses.focal, normal(4, 3), np.array([0, 2, 1, 1])),
    "dice": (losses.dice, np.abs(normal(4, 5, 2)), np.abs(normal(4, 5, 2, seed=1))),
    "boundary": (losses.boundary, normal(4, 5, 2), (normal(4, 5, seed=1) > 0).astype(int)),
    "precipitation": (
        lambda *a, **k: losses.precipitation(
            *a, thresholds=[1], weights=[1, 2], squared=1.0, absolute=1.0, **k
        ),
        normal(4, 3),
        RATES,
    ),
    "ctc": (losses.ctc, normal(4, 5, 3), np.array([[1, 2], [1, -1], [2, 2], [-1, -1]])),
    "ssim": (losses.ssim, normal(4, 12, 11, 2), normal(4, 12, 11, 2, seed=1)),
}


def test_every_loss_has_a_case():
    # "loss" is the decorator; boxes have tests in test_regression.py.
    assert CASES.keys() == set(losses.__all__) - {"loss", "multibox"}


@pytest.mark.parametrize("name", CASES)
def test_losses_and_gradients_of_shards_add_up_to_the_batchs(name):
    function, *arrays = CASES[name]
    check_cut(function, *arrays)


@pytest.mark.parametrize("name", CASES)
def test_weights_have_to_be_one_for_each_sample(name):
    function, *arrays = CASES[name]
    with pytest.raises(ShapeError, match=r"sample_weight to have .* shape \(4,\), found"):
        function(*arrays, sample_weight=np.ones((4, 1)))


@pytest.mark.parametrize("name", CASES)
def test_predictions_have_to_be_floats(name):
    function, first, *rest = CASES[name]
    with pytest.raises(ShapeError, match="expected x of float32 or float64, found int64"):
        function(first.astype(int), *rest)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n == "ctc" else n for n in CASES]
)
def test_a_loss_leaves_its_arguments_and_keeps_float32(name):
    function, *arrays = CASES[name]
    singles = [a.astype("f4") if a.dtype.kind == "f" else a for a in arrays]
    originals = [a.copy() for a in singles]
    for a in singles:
        a.flags.writeable = False
    prediction = Tensor(singles[0], requires_grad=True)
    result = function(prediction, *singles[1:])
    result.backward()
    assert result.dtype == prediction.grad.dtype == np.float32
    assert float(result) == pytest.approx(float(function(*arrays)), rel=1e-3, abs=1e-6)
    for a, before in zip(singles, originals, strict=True):
        np.testing.assert_array_equal(a, before)


#: Losses whose slope does not depend on the prediction, so that it cannot show one that is NaN.
STRAIGHT = {
    "nll", "kl_divergence", "hinge", "hinge_embedding", "multi_margin", "multilabel_margin",
    "margin_ranking",
}  # fmt: skip
#: Losses that an infinite prediction leaves finite, since it is right, or that refuse it.
FINITE = {"hinge_embedding", "multi_margin", "binary_cross_entropy"}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", CASES)
def test_a_prediction_that_is_not_finite_shows_and_spoils_no_other_sample(name, bad, dtype):
    function, *arrays = CASES[name]
    x, *rest = (a.astype(dtype) if a.dtype.kind == "f" else a for a in arrays)
    x[0].flat[0] = bad
    if bad == np.inf and name in FINITE:
        return
    prediction = Tensor(x, requires_grad=True)
    with np.errstate(invalid="ignore"):
        loss = function(prediction, *rest)
        loss.backward()
    assert np.isnan(float(loss)) if np.isnan(bad) else not np.isfinite(float(loss))
    assert np.isfinite(prediction.grad[1:]).all()
    if np.isnan(bad):
        assert np.isnan(prediction.grad[0]).any() == (name not in STRAIGHT)


@given(shape=hnp.array_shapes(max_dims=4, max_side=4))
def test_the_mean_is_over_samples_of_means_over_elements(shape):
    values = normal(*shape)
    weights = normal(shape[0], seed=1)
    loss = losses.absolute_error(values, np.zeros(shape), sample_weight=weights)
    each = np.abs(values).reshape(shape[0], -1).mean(1)
    assert float(loss) == pytest.approx((weights * each).mean(), abs=1e-12)


def test_weights_may_be_integers_or_a_tensor():
    x = normal(3, 2)
    for weights in ([2, 2, 2], np.full(3, 2, "u1"), Tensor(np.full(3, 2.0))):
        loss = losses.squared_error(x, 0 * x, sample_weight=weights)
        assert float(loss) == pytest.approx(2 * (x**2).mean())


def test_an_empty_batch_is_nan():
    assert np.isnan(float(losses.squared_error(np.empty((0, 2)), np.empty((0, 2)))))


def zeros(*shape):
    return np.zeros(shape)


ROWS, RAIN = zeros(2, 3), {"squared": 1.0, "absolute": 0.0}
#: The error, the loss, its sentence, arrays and settings.
REFUSED = [
    (ShapeError, "huber", r"shape \(3, 1\), found float64 \(3,\)", zeros(3, 1), zeros(3)),
    (SettingsError, "huber", "expected delta > 0, found -1", ROWS, ROWS, {"delta": -1}),
    (SettingsError, "smooth_l1", "expected beta >= 0, found -1", ROWS, ROWS, {"beta": -1}),
    (ShapeError, "kl_divergence", r"expected shape .* found \(3,\)", zeros(3), zeros(3)),
    (ShapeError, "gaussian_kl", r"expected arrays .* found \(3,\)", zeros(3), zeros(3)),
    (ShapeError, "multibox", r"expected .*\(2, 4\); match the boxes",
     zeros(2, 5, 4), zeros(2, 5, 3), zeros(2, 4).astype(int), zeros(2, 5, 4)),
    (ShapeError, "dice", r"expected shape .* found \(2, 3\)", ROWS, ROWS),
    (ShapeError, "ssim", r"at least 11 x 11 pixels, found shape \(1, 10, 20, 1\)",
     zeros(1, 10, 20, 1), zeros(1, 10, 20, 1)),
    (SettingsError, "ssim", r"odd window, .* found 4, 1\.5 and 1\.0",
     zeros(1, 12, 12, 1), zeros(1, 12, 12, 1), {"window": 4}),
    (ShapeError, "multi_margin", "found 3", ROWS, [0, 3]),
    (ShapeError, "multi_margin", r"\(N, C\)", zeros(3), [0, 0, 0]),
    (SettingsError, "multi_margin", "p 1 or 2, found 3", ROWS, [0, 0], {"p": 3}),
    (ShapeError, "multilabel_margin", "labels from 0 to 2, found 5", ROWS, [[0, 5], [0, 1]]),
    (ShapeError, "multilabel_margin",
     r"shape \(2, K\), each row ended by -1, found int64 \(1, 3\)", ROWS, [[0, 0, 0]]),
    *((error, name, sentence, *arrays)
      for name in ("hinge", "soft_margin", "hinge_embedding")
      for error, sentence, *arrays in [
        (DataError, "expected targets of -1 and 1, found 0", zeros(3), [1, 0, -1]),
        (ShapeError, r"target of shape \(3, 1\), found \(3,\)", zeros(3, 1), np.ones(3)),
    ]),
    *((SettingsError, "triplet", f"p >= 1 and finite, found {p}", ROWS, ROWS, ROWS, {"p": p})
      for p in (0.5, np.inf)),
    (ShapeError, "triplet", r"\(N, ..., D\), found \(3,\)", zeros(3), zeros(3), zeros(3)),
    (ShapeError, "cosine_embedding", r"shape \(2,\), found \(2, 3\)", ROWS, ROWS, np.ones((2, 3))),
    (DataError, "binary_cross_entropy", r"from 0 to 1, found 1\.5; for logits there is",
     [0.5, 1.5], zeros(2)),
    *((ShapeError, "binary_cross_entropy_with_logits",
       rf"{key}: .* broadcasts with \(2, 3\), found \(2,\)", ROWS, ROWS, {key: [1, 2]})
      for key in ("weight", "pos_weight")),
    *((SettingsError, "precipitation", "one more weight than thresholds, found", ROWS, ROWS,
       {"thresholds": np.array(thresholds), "weights": np.array(weights), **RAIN})
      for thresholds, weights in (([2, 5], [1, 7]), ([5, 2], [1, 2, 3]))),
    (ShapeError, "cross_entropy", "expected labels from 0 to 2, found 3", ROWS, [0, 3]),
    (ShapeError, "cross_entropy", "expected labels from 0 to 2, found -1", ROWS, [-1, 0]),
    (ShapeError, "cross_entropy", r"integer labels of shape \(2,\), found float64", ROWS, zeros(2)),
    (ShapeError, "cross_entropy", r"labels of shape \(2,\), found int64 \(1, 2\)", ROWS, [[0, 1]]),
    (SettingsError, "cross_entropy", r"from 0 to 1, found 1\.5", ROWS, [0, 0], {"smoothing": 1.5}),
    (ShapeError, "cross_entropy", r"each of 3 classes, found shape \(2,\)",
     ROWS, [0, 0], {"weight": [1, 2]}),
    (SettingsError, "cross_entropy", "no ignore_index with probabilities, found 1",
     ROWS, ROWS, {"ignore_index": 1}),
    (ShapeError, "nll", "expected labels from 0 to 2, found 3", ROWS, [0, 3]),
    (ShapeError, "nll", r"labels of shape \(2,\), found float64", ROWS, zeros(2)),
    *((error, "ctc", sentence, zeros(2, 4, 3), labels, settings)
      for error, sentence, labels, settings in [
        (ShapeError, r"labels of shape \(2, S\), found int64 \(1, 2\)", [[1, 2]], {}),
        (ShapeError, "found float64", [[1.0], [2.0]], {}),
        (ShapeError, "labels from 0 to 2, found 5", [[1], [5]], {}),
        (DataError, "labels other than the blank, found 0", [[1], [0]], {}),
        (DataError, r"-1 only after a sample's labels, found \[-1, 2\]", [[1, 2], [-1, 2]], {}),
        (ShapeError, "a blank from 0 to 2, found 3", [[1], [2]], {"blank": 3}),
        (DataError, "lengths from 0 to 4, found 5", [[1], [2]], {"lengths": [4, 5]}),
        (ShapeError, r"lengths of shape \(2,\), found int64 \(1,\)", [[1], [2]], {"lengths": [4]}),
    ]),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: " ".join(case[1:3]))
def test_mistakes_are_named(case):
    error, name, sentence, *arrays = case
    settings = arrays.pop() if isinstance(arrays[-1], dict) else {}
    named = name.removesuffix("_with_logits")  # which shares its checks
    with pytest.raises(error, match=f"^{named}: .*{sentence}"):
        getattr(losses, name)(*map(np.array, arrays), **settings)
