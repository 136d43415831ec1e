"""Losses become means over samples: weights, cuts into shards, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp

from daskdl.errors import ShapeError
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
    aside = {"loss", "multibox"}  # of boxes, in test_multibox.py
    assert CASES.keys() == set(losses.__all__) - aside


@pytest.mark.parametrize("name", CASES)
def test_the_shards_losses_and_gradients_are_the_batchs(name):
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
    kept = [a.copy() for a in singles]
    for a in singles:
        a.flags.writeable = False
    prediction = Tensor(singles[0], requires_grad=True)
    result = function(prediction, *singles[1:])
    result.backward()
    assert result.dtype == prediction.grad.dtype == np.float32
    assert float(result) == pytest.approx(float(function(*arrays)), rel=1e-3, abs=1e-6)
    for a, before in zip(singles, kept, strict=True):
        np.testing.assert_array_equal(a, before)


@given(shape=hnp.array_shapes(max_dims=4, max_side=4))
def test_the_mean_is_over_samples_of_means_over_elements(shape):
    values = normal(*shape)
    weights = normal(shape[0], seed=1)
    found = losses.absolute_error(values, np.zeros(shape), sample_weight=weights)
    each = np.abs(values).reshape(shape[0], -1).mean(1)
    assert float(found) == pytest.approx((weights * each).mean(), abs=1e-12)


def test_weights_may_be_integers_or_a_tensor():
    x = normal(3, 2)
    for weights in ([2, 2, 2], np.full(3, 2, "u1"), Tensor(np.full(3, 2.0))):
        found = losses.squared_error(x, 0 * x, sample_weight=weights)
        assert float(found) == pytest.approx(2 * (x**2).mean())


def test_an_empty_batch_is_nan():
    assert np.isnan(float(losses.squared_error(np.empty((0, 2)), np.empty((0, 2)))))


def test_targets_have_to_have_the_predictions_shape():
    with pytest.raises(ShapeError, match=r"huber: .* shape \(3, 1\), found float64 \(3,\)"):
        losses.huber(np.zeros((3, 1)), np.zeros(3))
