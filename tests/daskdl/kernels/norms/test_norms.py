"""Kernels of normalisation by groups, rows, lengths, neighbours and batches."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.norms import batchnorm, l2norm, layernorm, lrn
from daskdl.kernels.norms import groupnorm as kernel
from daskdl.kernels.norms.lrn import Response
from tests.daskdl.gradients import layouts, same_bits


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "groups"),
    [
        ((3, 700, 6), 3),
        ((2, 40, 300), 4),
        ((4, 5000, 8), 1),
        ((3, 6000, 64), 4),  # large enough to be written past the caches
        ((2, 9, 7), 7),
        ((0, 3, 2), 1),
        ((2, 0, 2), 1),
    ],
)
def test_group_norm_agrees_with_float64(shape, groups):
    rng = np.random.default_rng(0)
    x, dy = (50 + rng.normal(size=(2, *shape))).astype("f4")
    weight, bias = rng.normal(size=(2, shape[2])).astype("f4")

    def passes():
        y, statistics = kernel.forward(x, weight, bias, groups, 1e-5)
        return y, *kernel.backward(dy, x, weight, statistics)

    y, dx, totals = same_bits(passes)
    if not x.size:
        assert y.shape == dx.shape == shape
        assert not totals.any()
        return
    exact, g = (a.astype("f8").reshape(*shape[:2], groups, -1) for a in (x, dy))
    gain, shift = (a.reshape(groups, -1).astype("f8") for a in (weight, bias))

    def mean(a):
        return a.mean((1, 3), keepdims=True)

    deviation = np.sqrt(mean((exact - mean(exact)) ** 2) + 1e-5)
    d = (exact - mean(exact)) / deviation
    np.testing.assert_allclose(y, (d * gain + shift).reshape(shape), atol=1e-4)
    expected = [(g * d).sum((0, 1)).ravel(), g.sum((0, 1)).ravel()]
    np.testing.assert_allclose(totals, expected, rtol=1e-4, atol=0.05)
    w = g * gain
    expected = (w - mean(w) - d * mean(w * d)) / deviation
    np.testing.assert_allclose(dx, expected.reshape(shape), atol=0.02)


@pytest.mark.parametrize("shape", [(700, 65), (3, 40_000), (0, 5)])
def test_l2_norm_agrees_with_float64(shape):
    x, dy = np.random.default_rng(0).normal(size=(2, *shape)).astype("f4")
    y, lengths = same_bits(lambda: l2norm.forward(x, 1e-12))
    dx = same_bits(lambda: l2norm.backward(dy, y, lengths, 1e-12))
    exact = x.astype("f8")
    np.testing.assert_allclose(lengths, np.linalg.norm(exact, axis=1), rtol=1e-6)
    unit = exact / np.linalg.norm(exact, axis=1, keepdims=True)
    np.testing.assert_allclose(y, unit, atol=1e-6)
    along = (dy * unit).sum(1, keepdims=True)
    np.testing.assert_allclose(dx, (dy - along * unit) / lengths[:, None], atol=1e-5)


@pytest.mark.parametrize("shape", [(700, 65), (3, 40_000), (0, 5)])
def test_layer_norm_agrees_with_float64(shape):
    rng = np.random.default_rng(0)
    x, dy = (100 + rng.normal(size=(2, *shape))).astype("f4")
    weight, bias = rng.normal(size=(2, shape[1])).astype("f4")
    y, scales = same_bits(lambda: layernorm.forward(x, weight, bias, 1e-5))
    dx, totals = same_bits(lambda: layernorm.backward(dy, x, weight, scales))
    exact, g = x.astype("f8"), dy.astype("f8")
    deviation = np.sqrt(exact.var(1, keepdims=True) + 1e-5)
    d = (exact - exact.mean(1, keepdims=True)) / deviation
    np.testing.assert_allclose(y, d * weight + bias, atol=1e-4)
    np.testing.assert_allclose(totals, [(g * d).sum(0), g.sum(0)], rtol=1e-4, atol=0.05)
    w = g * weight
    slope = (w * d).mean(1, keepdims=True)
    expected = (w - w.mean(1, keepdims=True) - d * slope) / deviation
    np.testing.assert_allclose(dx, expected, atol=0.02)


@pytest.mark.parametrize("shape", [(700, 65), (3, 5000), (0, 5)])
@pytest.mark.parametrize("response", [Response(5, 0.3, 0.75, 1.0), Response(4, 2.0, 0.5, 0.1)])
def test_response_norm_agrees_with_float64(shape, response):
    x, dy = np.random.default_rng(0).normal(size=(2, *shape)).astype("f4")
    y, dx = same_bits(lambda: (lrn.forward(x, response), lrn.backward(dy, x, response)))
    before, after = response.size // 2, (response.size - 1) // 2
    exact = x.astype("f8")

    def windows(a, before, after):
        padded = np.pad(a, ((0, 0), (before, after)))
        return np.lib.stride_tricks.sliding_window_view(padded, response.size, 1).sum(-1)

    s = response.k + response.alpha / response.size * windows(exact**2, before, after)
    expected = exact * s**-response.beta
    np.testing.assert_allclose(y, expected, atol=1e-5)
    around = windows(dy * expected / s, after, before)
    factor = 2 * response.alpha / response.size * response.beta
    np.testing.assert_allclose(dx, dy * s**-response.beta - factor * x * around, atol=1e-5)


def test_variance_is_exact_where_the_mean_is_large():
    """The square of the mean is 1e8 times the variance: all digits of float32, and more."""
    rng = np.random.default_rng(0)
    x = (1e4 + rng.normal(size=(200_000, 3))).astype("f4")
    mean, variance = batchnorm.moments(x)
    np.testing.assert_allclose(mean, x.astype("f8").mean(0), rtol=1e-9)
    np.testing.assert_allclose(variance, x.astype("f8").var(0), rtol=1e-5)


def test_mean_that_float32_cannot_represent_is_subtracted():
    x = (1e4 + np.random.default_rng(0).normal(size=(5000, 2))).astype("f4")
    mean, variance = batchnorm.moments(x)
    scale, none = 1 / np.sqrt(variance), np.zeros(2)
    y = batchnorm.normalise(x, mean, scale, none, False)
    np.testing.assert_allclose(y.astype("f8").mean(0), 0, atol=2e-6)
    total, slope = batchnorm.gradient_sums(np.ones_like(x), x, mean, scale, none, False)
    np.testing.assert_allclose(total, len(x))
    np.testing.assert_allclose(slope, 0, atol=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("channels", [1, 130, 2048, 2049])
def test_any_number_of_channels(channels):
    rng = np.random.default_rng(channels)
    x, dy = rng.normal(size=(2, 131, channels)).astype("f4")
    scale, bias = rng.normal(size=(2, channels))
    mean, variance = same_bits(lambda: batchnorm.moments(x))
    y = same_bits(lambda: batchnorm.normalise(x, mean, scale, bias, True))
    total, slope = same_bits(lambda: batchnorm.gradient_sums(dy, x, mean, scale, bias, True))
    end = {"offset": scale / 2, "slope": bias / 3}
    dx = same_bits(lambda: batchnorm.input_gradient(dy, x, mean, scale, bias, True, **end))
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
    mean, variance = batchnorm.moments(x)
    y = batchnorm.normalise(x, mean, 1 / np.sqrt(variance), mean, False)
    np.testing.assert_allclose(y, (x - mean) / np.sqrt(variance) + mean, atol=1e-5)


def test_any_layout_compiles_once():
    x = np.random.default_rng(0).random((2, 3, 4, 5), np.float32)
    expected = batchnorm.moments(x)
    compiled = len(batchnorm.add_moments.signatures)
    for other in layouts(x):
        for moment, right in zip(batchnorm.moments(other), expected, strict=True):
            np.testing.assert_allclose(moment, right, rtol=1e-6)
    assert len(batchnorm.add_moments.signatures) == compiled


@pytest.mark.slow
@pytest.mark.parametrize("channels", [3, 64, 2049])
def test_is_norm_then_sum_then_relu(channels):
    rng = np.random.default_rng(channels)
    x, residual = rng.normal(size=(2, 1031, channels)).astype("f4")
    mean, scale, bias = rng.normal(size=(3, channels))
    exact = (x.astype("f8") - mean) * scale + bias + residual
    y, without_relu = same_bits(
        lambda: [
            batchnorm.normalise(x, mean, scale, bias, relu, residual) for relu in (True, False)
        ]
    )
    np.testing.assert_allclose(y, np.maximum(exact, 0), atol=1e-5)
    np.testing.assert_allclose(without_relu, exact, atol=1e-5)


def test_nan_stays_nan():
    x = np.array([[np.nan, 1.0]], "f4")
    ones = np.ones(2)
    y = batchnorm.normalise(x, ones, ones, ones, True, np.array([[1.0, np.nan]], "f4"))
    assert np.isnan(y).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "channels"),
    [(1, 3), (1031, 3), (1031, 2049), (70_001, 64)],  # the last is written past the caches
)
def test_gradient_is_sum_then_relu_then_sums(rows, channels):
    rng = np.random.default_rng(channels)
    y, x, dy, more = rng.normal(size=(4, rows, channels)).astype("f4")
    mean = rng.normal(size=channels)
    for second in (None, more):

        def sums(second=second):
            slopes, totals = batchnorm.gradient_plus(dy, second, y, x, mean)
            return slopes, *totals

        slopes, total, slope = same_bits(sums)
        expected = (dy if second is None else dy + second) * (y > 0)
        np.testing.assert_array_equal(slopes, expected)
        exact = expected.astype("f8")
        np.testing.assert_allclose(total, exact.sum(0), atol=0.02)
        np.testing.assert_allclose(slope, (exact * (x - mean)).sum(0), atol=0.04)
