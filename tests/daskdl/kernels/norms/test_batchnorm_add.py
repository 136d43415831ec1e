"""Normalisation with an addend: the sum, the floor, any channels and threads, NaN; and back."""

from __future__ import annotations

import math

import numpy as np
import pytest

from daskdl.kernels.norms.batchnorm_add import gradient_plus, normalise_plus
from daskdl.kernels.runtime.threads import thread_budget


@pytest.mark.parametrize("channels", [3, 64, 2049])
@pytest.mark.parametrize("threads", [1, 2])
def test_is_norm_then_sum_then_relu(channels, threads):
    rng = np.random.default_rng(channels)
    x, residual = rng.normal(size=(2, 1031, channels)).astype("f4")
    mean, scale, bias = rng.normal(size=(3, channels))
    exact = (x.astype("f8") - mean) * scale + bias + residual
    with thread_budget(threads):
        y = normalise_plus(x, residual, mean, scale, bias, 0)
        plain = normalise_plus(x, residual, mean, scale, bias, math.nan)
    np.testing.assert_allclose(y, np.maximum(exact, 0), atol=1e-5)
    np.testing.assert_allclose(plain, exact, atol=1e-5)


def test_nan_stays_nan():
    x = np.array([[np.nan, 1.0]], "f4")
    ones = np.ones(2)
    y = normalise_plus(x, np.array([[1.0, np.nan]], "f4"), ones, ones, ones, 0)
    assert np.isnan(y).all()


@pytest.mark.parametrize("rows", [1, 1031, 70_001])  # the last is written past the caches
@pytest.mark.parametrize("channels", [3, 64, 2049])
@pytest.mark.parametrize("threads", [1, 2])
def test_gradient_is_sum_then_relu_then_sums(rows, channels, threads):
    rows = min(rows, 4_500_000 // channels)
    rng = np.random.default_rng(channels)
    y, x, dy, more = rng.normal(size=(4, rows, channels)).astype("f4")
    mean = rng.normal(size=channels)
    for second in (None, more):
        with thread_budget(threads):
            found, (total, slope) = gradient_plus(dy, second, y, x, mean)
        expected = (dy if second is None else dy + second) * (y > 0)
        np.testing.assert_array_equal(found, expected)
        exact = expected.astype("f8")
        np.testing.assert_allclose(total, exact.sum(0), atol=0.02)
        np.testing.assert_allclose(slope, (exact * (x - mean)).sum(0), atol=0.04)
