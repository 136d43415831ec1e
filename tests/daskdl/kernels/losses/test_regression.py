"""Kernels of losses of numbers and of yes or no."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.losses import regression as deviation
from daskdl.kernels.losses import regression as kernels
from daskdl.kernels.losses.binary import cross_entropy, cross_entropy_back
from daskdl.kernels.runtime.passes import one_pass
from daskdl.kernels.runtime.threads import thread_budget

WEIGHTS, THRESHOLDS = [1, 2, 5], [0.5, 1.5]


def pair(*shape):
    """Return predictions, and targets of which some are thresholds themselves."""
    x, t = np.random.default_rng(0).normal(size=(2, *shape)).astype("f4")
    return x, np.round(2 * t) / 2


def costs(name, x, t):
    """Return settings of both kernels of a name, and in float64 what they are to give."""
    d = x.astype("f8") - t
    if name == "balanced":
        w = np.array(WEIGHTS)[np.searchsorted(THRESHOLDS, t, "right")]
        more = [*WEIGHTS, *THRESHOLDS]
        cost, slope = w * (0.5 * d * d + 2 * abs(d)), w * (d + 2 * np.sign(d))
        return [0.5, 2, *more], [1, 2, *more], cost, slope
    if name == "squared":
        return [np.inf], [np.inf, 2], d * d, 2 * d
    limited = d.clip(-0.7, 0.7)
    return [0.7], [0.7, 1], (d - limited / 2) * limited, limited


@pytest.mark.parametrize("name", ["squared", "huber", "balanced"])
@pytest.mark.parametrize(("stretches", "length"), [(1, 70_001), (3, 40_000), (50, 7), (4, 0)])
def test_sums_and_slopes_are_those_of_float64_whatever_the_threads(name, stretches, length):
    x, t = pair(stretches, length)
    kernel = kernels.balanced if name == "balanced" else kernels.huber
    back = kernels.balanced_back if name == "balanced" else kernels.huber_back
    own, to_back, cost, slope = costs(name, x, t)
    results = []
    for threads in (1, 2):
        with thread_budget(threads):
            sums = kernels.sums(kernel, stretches, x, t, np.array(own, "f4"))
            (dx,) = one_pass(back, x, t, settings=np.array(to_back, "f4"))
        results.append((sums, dx))
    np.testing.assert_allclose(sums, cost.sum(1), rtol=1e-6)
    np.testing.assert_allclose(dx, slope, rtol=1e-5, atol=1e-6)
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_shows_but_where_the_target_is_missing(bad):
    x, t = np.array([bad, 1], "f4"), np.array([0, 1], "f4")
    for own in ([np.inf], [1.0]):
        assert not np.isfinite(kernels.sums(kernels.huber, 1, x, t, np.array(own, "f4"))).any()
    own = np.array([1, 1, *WEIGHTS, *THRESHOLDS], "f4")
    assert not np.isfinite(kernels.sums(kernels.balanced, 1, x, t, own)).any()
    assert not np.isfinite(one_pass(kernels.balanced_back, x, t, settings=own)[0][0])
    t[0] = np.nan
    assert kernels.sums(kernels.balanced, 1, x, t, own) == 0
    assert one_pass(kernels.balanced_back, x, t, settings=own)[0].tolist() == [0, 0]


def both(x, t, pos_weight, factor):
    """Return the sums over the last axis and the slopes, with the budget of threads there is."""
    own, back = (np.array([pos_weight - 1, *more], x.dtype) for more in ((), (factor,)))
    (dx,) = one_pass(cross_entropy_back, x, t, settings=back)
    return deviation.sums(cross_entropy, len(x), x, t, own), dx


@pytest.mark.parametrize("pos_weight", [1.0, 3.5])
@pytest.mark.parametrize(("stretches", "length"), [(1, 70_001), (3, 40_000), (50, 7), (4, 0)])
def test_sums_and_slopes_are_those_of_float64_whatever_the_threads_binary(
    pos_weight, stretches, length
):
    rng = np.random.default_rng(0)
    x = (20 * rng.normal(size=(stretches, length))).astype("f4")
    t = rng.random((stretches, length), np.float32).round(1)  # of which some are 0 and 1
    results = []
    for threads in (1, 2):
        with thread_budget(threads):
            results.append(both(x, t, pos_weight, 0.5))
    sums, dx = results[0]
    logit, yes = x.astype("f8"), t.astype("f8")
    cost = pos_weight * yes * np.logaddexp(0, -logit) + (1 - yes) * np.logaddexp(0, logit)
    sure = 1 / (1 + np.exp(-logit))
    slope = 0.5 * ((1 - yes) * sure - pos_weight * yes * (1 - sure))
    np.testing.assert_allclose(sums, cost.sum(1), rtol=2e-6)
    np.testing.assert_allclose(dx, slope, rtol=0, atol=2e-6)
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_shows(bad):
    x, t = np.array([[bad, 1]], "f4"), np.zeros((1, 2), "f4")
    sums, dx = both(x, t, 1.0, 1.0)
    assert not np.isfinite(sums).any()
    assert np.isnan(bad) == np.isnan(dx[0, 0])
    assert np.isfinite(dx[0, 1])
