"""Costs of logits and their slopes equal numpy's in float64, with any threads."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.losses import regression as deviation
from daskdl.kernels.losses.binary import cross_entropy, cross_entropy_back
from daskdl.kernels.runtime.passes import one_pass
from daskdl.kernels.runtime.threads import thread_budget


def both(x, t, pos_weight, factor):
    """Return the sums over the last axis and the slopes, with the budget of threads there is."""
    own, back = (np.array([pos_weight - 1, *more], x.dtype) for more in ((), (factor,)))
    (dx,) = one_pass(cross_entropy_back, x, t, settings=back)
    return deviation.sums(cross_entropy, len(x), x, t, own), dx


@pytest.mark.parametrize("pos_weight", [1.0, 3.5])
@pytest.mark.parametrize(("stretches", "length"), [(1, 70_001), (3, 40_000), (50, 7), (4, 0)])
def test_sums_and_slopes_are_those_of_float64_whatever_the_threads(pos_weight, stretches, length):
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
