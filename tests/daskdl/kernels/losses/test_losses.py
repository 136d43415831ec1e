"""Kernels of losses: cross entropies, CTC, and deviations of numbers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import special

from daskdl.kernels.losses import crossentropy, ctc, softmax
from daskdl.kernels.losses import regression as deviation
from daskdl.kernels.losses import softmax as kernels
from daskdl.kernels.losses.regression import cross_entropy, cross_entropy_back
from daskdl.kernels.runtime.passes import one_pass
from daskdl.kernels.runtime.threads import thread_budget
from tests.daskdl.gradients import same_bits


@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (2, 3, 40)])
@pytest.mark.parametrize(("dtype", "tolerance"), [("f4", 1e-5), ("f8", 1e-12)])
def test_soft_targets(shape, dtype, tolerance):
    rng = np.random.default_rng(0)
    x, q = rng.normal(size=shape).astype(dtype), rng.random(shape).astype(dtype)
    factors = rng.random(q[..., 0].size)
    losses, scales = crossentropy.soft(x, q)
    exact, shares = x.astype("f8"), q.astype("f8")
    expected = -(shares * special.log_softmax(exact, -1)).sum(-1).ravel()
    np.testing.assert_allclose(losses, expected, rtol=tolerance, atol=tolerance)
    gradient = crossentropy.soft_gradient(x, q, scales, factors)
    slope = shares.sum(-1, keepdims=True) * special.softmax(exact, -1) - shares
    np.testing.assert_allclose(
        gradient, factors.reshape(*shape[:-1], 1) * slope, rtol=0, atol=tolerance
    )


def test_one_target_for_all_rows_and_none_for_some():
    rng = np.random.default_rng(1)
    x, q, labels = rng.normal(size=(4, 3)), rng.random(3), np.array([0, 2, 1, 1])
    factors, spread = np.array([1.0, 0.0, 2.0, 0.5]), np.array([0.3, 0.0, 0.0, 1.0])
    tops = x.max(1)
    shared = crossentropy.shared_target(x, q, tops)
    np.testing.assert_allclose(shared, ((x - tops[:, None]) * q).sum(1), rtol=1e-13)
    _, scales = softmax.cross_entropy(x, labels)
    x[1] = np.nan
    gradient = crossentropy.gradient(x, labels, scales, factors, spread, q)
    p = special.softmax(x, -1)
    expected = factors[:, None] * (p - np.eye(3)[labels]) + spread[:, None] * (q.sum() * p - q)
    expected[1] = 0
    np.testing.assert_allclose(gradient, expected, atol=1e-13)


def of_soft_targets(rng):
    x, q = rng.random((2, 700, 90), np.float32)
    labels, factors = np.arange(700) % 90, rng.random(700)
    losses, scales = crossentropy.soft(x, q)
    soft = crossentropy.soft_gradient(x, q, scales, factors)
    return losses, soft, crossentropy.gradient(x, labels, scales, factors, factors, q[0])


def of_softmax(rng):
    x, dy = rng.standard_normal((2, 600, 100), np.float32)
    labels = np.arange(600) % 100
    y, (losses, scales) = kernels.softmax(x), kernels.cross_entropy(x, labels)
    dx = kernels.softmax_gradient(y, dy)
    d_log = kernels.log_softmax_gradient(kernels.log_softmax(x), dy)
    return y, dx, d_log, losses, kernels.cross_entropy_gradient(x, labels, scales, 0.5)


def of_ctc(rng):
    x = special.log_softmax(rng.normal(size=(6, 80, 20)), -1)
    arguments = x, rng.integers(1, 20, (6, 15)), np.full(6, 15), np.arange(75, 81), 0
    forwards = ctc.forward(*arguments)
    return forwards[0], ctc.gradient(*arguments, forwards, np.ones(6))


@pytest.mark.parametrize(
    "passes", [of_soft_targets, of_ctc, pytest.param(of_softmax, marks=pytest.mark.slow)]
)
def test_threads_do_not_change_the_bits(passes):
    same_bits(lambda: passes(np.random.default_rng(0)))


def test_logarithms_at_labels_are_the_same_bits_with_any_threads():
    rng = np.random.default_rng(3)
    x, labels, shares = (
        rng.random((70_000, 3), np.float32),
        rng.integers(0, 3, 70_000),
        rng.random(70_000),
    )
    shares[7], x[7] = 0, np.nan
    slopes = rng.random(7)
    expected = np.zeros_like(x)
    expected[np.arange(len(x)), labels] = -np.repeat(slopes, 10_000) * shares
    for threads in (1, 3):
        with thread_budget(threads):
            losses = crossentropy.nll(x, labels, shares)
            np.testing.assert_array_equal(losses[:7], (-x[np.arange(7), labels[:7]] * shares[:7]))
            assert losses[7] == 0
            gradient = crossentropy.nll_gradient(x, labels, shares, slopes)
            np.testing.assert_array_equal(gradient, expected)
            assert crossentropy.nll(x, np.append(labels[1:], 3), shares) is None


@pytest.mark.parametrize("shape", [(1, 1), (5, 2), (3, 7, 33), (2, 5000), (0, 4), (3, 0)])
@pytest.mark.parametrize(("dtype", "tolerance"), [("f4", 3e-6), ("f8", 1e-12)])
@pytest.mark.parametrize("scale", [1, 30])
def test_softmax_agrees_with_scipy(shape, dtype, tolerance, scale):
    x = (scale * np.random.default_rng(0).normal(size=shape)).astype(dtype)
    assert kernels.softmax(x).shape == kernels.log_softmax(x).shape == shape
    if not x.size:
        return
    exact = x.astype("f8")
    expected = special.softmax(exact, -1)
    np.testing.assert_allclose(kernels.softmax(x), expected, rtol=tolerance, atol=1e-9)
    np.testing.assert_allclose(
        kernels.log_softmax(x), special.log_softmax(exact, -1), rtol=tolerance, atol=1e-6
    )


def test_numbers_of_both_signs_and_far_apart():
    x = np.array([[-3e38, -1, -2], [3e38, 0, 0], [-np.inf, 0, 0], [-5, -4, -3], [0, -0.0, 0]], "f4")
    expected = special.softmax(x.astype("f8"), -1)
    np.testing.assert_allclose(kernels.softmax(x), expected, rtol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf])
@pytest.mark.parametrize("place", [0, 5, 40])
def test_a_row_with_nan_or_infinity_is_nan_and_no_other(bad, place):
    x = np.random.default_rng(0).normal(size=(3, 41)).astype("f4")
    x[1, place] = bad
    labels = np.zeros(3, int)
    y = kernels.softmax(x)
    losses, _ = kernels.cross_entropy(x, labels)
    assert np.isnan(y[1, place])
    assert np.isnan(kernels.log_softmax(x)[1, place])
    assert np.isnan(losses[1])
    assert np.isfinite(y[[0, 2]]).all()
    assert np.isfinite(losses[[0, 2]]).all()


def likelihood(p, labels, blank=0):
    """Sum the probabilities of all paths that read as the labels; p (T, C)."""
    total = 0.0
    for path in itertools.product(range(p.shape[1]), repeat=len(p)):
        read = [c for c, _ in itertools.groupby(path) if c != blank]
        if read == labels:
            total += np.prod([p[t, c] for t, c in enumerate(path)])
    return total


@pytest.mark.parametrize("labels", [[], [1], [1, 1], [2, 1], [1, 2, 1]])
def test_ctc_is_the_sum_over_all_paths(labels):
    x = special.log_softmax(np.random.default_rng(0).normal(size=(1, 5, 3)), -1)
    row = np.array([labels + [-1] * (3 - len(labels))])
    losses, _ = ctc.forward(x, row, np.array([len(labels)]), np.array([5]), 0)
    assert losses[0] == pytest.approx(-np.log(likelihood(np.exp(x[0]), labels)))


@pytest.mark.parametrize("scale", [1, 1e2, 1e4])
def test_likelihoods_far_from_one_are_right(scale):
    x = special.log_softmax(scale * np.random.default_rng(1).normal(size=(1, 7, 3)), -1)
    paths = [
        sum(x[0, t, c] for t, c in enumerate(path))
        for path in itertools.product(range(3), repeat=7)
        if [c for c, _ in itertools.groupby(path) if c] == [2, 1, 1]
    ]
    losses, _ = ctc.forward(x, np.array([[2, 1, 1]]), np.array([3]), np.array([7]), 0)
    assert losses[0] == pytest.approx(-special.logsumexp(paths), rel=1e-14)


def test_steps_beyond_the_length_do_not_count():
    x = special.log_softmax(np.random.default_rng(0).normal(size=(1, 6, 3)), -1)
    arguments = np.array([[1, 2]]), np.array([2]), np.array([4]), 0
    forwards = ctc.forward(x, *arguments)
    assert forwards[0][0] == pytest.approx(-np.log(likelihood(np.exp(x[0, :4]), [1, 2])))
    gradient = ctc.gradient(x, *arguments, forwards, np.ones(1))
    assert (gradient[0, 4:] == 0).all()
    np.testing.assert_allclose(gradient[0, :4].sum(-1), 0, atol=1e-12)


WEIGHTS, THRESHOLDS = [1, 2, 5], [0.5, 1.5]
BALANCED = deviation.balanced, deviation.balanced_back
HUBER = deviation.huber, deviation.huber_back


def pair(*shape):
    """Return predictions and targets; some targets are thresholds."""
    x, t = np.random.default_rng(0).normal(size=(2, *shape)).astype("f4")
    return x, np.round(2 * t) / 2


def logits(*shape):
    """Return logits and shares; some shares are 0 or 1."""
    rng = np.random.default_rng(0)
    return (20 * rng.normal(size=shape)).astype("f4"), rng.random(shape, np.float32).round(1)


def costs(name, x, t):
    """Return both kernels, the settings of each, and expected costs and slopes in float64."""
    d = x.astype("f8") - t
    if name == "balanced":
        w = np.array(WEIGHTS)[np.searchsorted(THRESHOLDS, t, "right")]
        more = [*WEIGHTS, *THRESHOLDS]
        cost, slope = w * (0.5 * d * d + 2 * abs(d)), w * (d + 2 * np.sign(d))
        return BALANCED, [0.5, 2, *more], [1, 2, *more], cost, slope
    if name == "squared":
        return HUBER, [np.inf], [np.inf, 2], d * d, 2 * d
    if name == "huber":
        limited = d.clip(-0.7, 0.7)
        return HUBER, [0.7], [0.7, 1], (d - limited / 2) * limited, limited
    pos_weight, logit, yes = float(name), x.astype("f8"), t.astype("f8")
    cost = pos_weight * yes * np.logaddexp(0, -logit) + (1 - yes) * np.logaddexp(0, logit)
    sure = 1 / (1 + np.exp(-logit))
    slope = 0.5 * ((1 - yes) * sure - pos_weight * yes * (1 - sure))
    return (cross_entropy, cross_entropy_back), [pos_weight - 1], [pos_weight - 1, 0.5], cost, slope


@pytest.mark.parametrize("name", ["squared", "huber", "balanced", "1", "3.5"])  # or pos_weight
@pytest.mark.parametrize(("stretches", "length"), [(1, 70_001), (3, 40_000), (50, 7), (4, 0)])
def test_sums_and_slopes_agree_with_float64_with_any_threads(name, stretches, length):
    x, t = (logits if name[0].isdigit() else pair)(stretches, length)
    (kernel, back), numbers, to_back, cost, slope = costs(name, x, t)

    def both_ways():
        sums = deviation.sums(kernel, stretches, x, t, np.array(numbers, "f4"))
        return sums, *one_pass(back, x, t, settings=np.array(to_back, "f4"))

    sums, dx = same_bits(both_ways)
    np.testing.assert_allclose(sums, cost.sum(1), rtol=2e-6 if kernel is cross_entropy else 1e-6)
    np.testing.assert_allclose(dx, slope, rtol=1e-5, atol=1e-6)
