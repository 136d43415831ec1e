"""Kernels of batch normalisation, alone and with an addition behind it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from daskdl.kernels.norms import batchnorm as kernel
from daskdl.kernels.norms.batchnorm_add import gradient_plus, normalise_plus
from daskdl.kernels.runtime.threads import thread_budget
from tests.daskdl.layouts import layouts


def test_variance_is_exact_where_the_mean_is_large():
    """The square of the mean is 1e8 times the variance: all digits of float32, and more."""
    rng = np.random.default_rng(0)
    x = (1e4 + rng.normal(size=(200_000, 3))).astype("f4")
    mean, variance = kernel.moments(x)
    np.testing.assert_allclose(mean, x.astype("f8").mean(0), rtol=1e-9)
    np.testing.assert_allclose(variance, x.astype("f8").var(0), rtol=1e-5)


def test_mean_that_float32_cannot_hold_is_taken_off_all_the_same():
    x = (1e4 + np.random.default_rng(0).normal(size=(5000, 2))).astype("f4")
    mean, variance = kernel.moments(x)
    scale, none = 1 / np.sqrt(variance), np.zeros(2)
    y = kernel.normalise(x, mean, scale, none, False)
    np.testing.assert_allclose(y.astype("f8").mean(0), 0, atol=2e-6)
    total, slope = kernel.gradient_sums(np.ones_like(x), x, mean, scale, none, False)
    np.testing.assert_allclose(total, len(x))
    np.testing.assert_allclose(slope, 0, atol=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("channels", [1, 3, 64, 130, 2048, 2049, 5000])
@pytest.mark.parametrize("threads", [1, 2])
def test_any_number_of_channels(channels, threads):
    rng = np.random.default_rng(channels)
    x, dy = rng.normal(size=(2, 131, channels)).astype("f4")
    scale, bias = rng.normal(size=(2, channels))
    with thread_budget(threads):
        mean, variance = kernel.moments(x)
        y = kernel.normalise(x, mean, scale, bias, True)
        total, slope = kernel.gradient_sums(dy, x, mean, scale, bias, True)
        dx = kernel.input_gradient(dy, x, mean, scale, bias, True, offset=scale / 2, slope=bias / 3)
    exact, g = x.astype("f8"), dy.astype("f8")
    np.testing.assert_allclose(mean, exact.mean(0), atol=1e-6)
    np.testing.assert_allclose(variance, exact.var(0), rtol=1e-5)
    through = (exact - mean) * scale + bias
    np.testing.assert_allclose(y, np.maximum(through, 0), atol=1e-5)
    g = g * (y > 0)
    np.testing.assert_allclose(total, g.sum(0), atol=1e-4)
    np.testing.assert_allclose(slope, (g * (exact - mean)).sum(0), atol=1e-4)
    np.testing.assert_allclose(dx, g * scale - scale / 2 - bias / 3 * (exact - mean), atol=1e-5)


@pytest.mark.slow
def test_large_results_are_written_past_the_caches():
    x = np.random.default_rng(0).random((70_001, 64), np.float32)
    mean, variance = kernel.moments(x)
    y = kernel.normalise(x, mean, 1 / np.sqrt(variance), mean, False)
    np.testing.assert_allclose(y, (x - mean) / np.sqrt(variance) + mean, atol=1e-5)


def test_any_layout_compiles_once():
    x = np.random.default_rng(0).random((2, 3, 4, 5), np.float32)
    expected = kernel.moments(x)
    compiled = len(kernel.add_moments.signatures)
    for other in layouts(x):
        for found, right in zip(kernel.moments(other), expected, strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-6)
    assert len(kernel.add_moments.signatures) == compiled


@pytest.mark.slow
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


@pytest.mark.slow
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
