"""Kernels of normalisation by groups, rows, lengths and neighbours."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.norms import groupnorm as kernel
from daskdl.kernels.norms import l2norm, layernorm, lrn
from daskdl.kernels.norms.lrn import Response
from daskdl.kernels.runtime.threads import thread_budget


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
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
def test_images_are_those_of_float64(shape, groups, threads):
    rng = np.random.default_rng(0)
    x, dy = (50 + rng.normal(size=(2, *shape))).astype("f4")
    weight, bias = rng.normal(size=(2, shape[2])).astype("f4")
    with thread_budget(threads):
        y, statistics = kernel.forward(x, weight, bias, groups, 1e-5)
        dx, totals = kernel.backward(dy, x, weight, statistics)
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


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_stays_in_its_sample_and_group(bad):
    x = np.random.default_rng(0).normal(size=(2, 30, 6)).astype("f4")
    x[1, 7, 4] = bad
    y, _ = kernel.forward(x, np.ones(6, "f4"), np.zeros(6, "f4"), 3, 1e-5)
    assert np.isnan(y[1, :, 4:]).all()
    assert np.isfinite(y[0]).all()
    assert np.isfinite(y[1, :, :4]).all()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(700, 65), (3, 40_000), (0, 5)])
def test_rows_are_those_of_float64(shape, threads):
    x, dy = np.random.default_rng(0).normal(size=(2, *shape)).astype("f4")
    with thread_budget(threads):
        y, lengths = l2norm.forward(x, 1e-12)
        dx = l2norm.backward(dy, y, lengths, 1e-12)
    exact = x.astype("f8")
    np.testing.assert_allclose(lengths, np.linalg.norm(exact, axis=1), rtol=1e-6)
    unit = exact / np.linalg.norm(exact, axis=1, keepdims=True)
    np.testing.assert_allclose(y, unit, atol=1e-6)
    along = (dy * unit).sum(1, keepdims=True)
    np.testing.assert_allclose(dx, (dy - along * unit) / lengths[:, None], atol=1e-5)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(700, 65), (3, 40_000), (0, 5)])
def test_rows_are_those_of_float64_of_layernorm(shape, threads):
    rng = np.random.default_rng(0)
    x, dy = (100 + rng.normal(size=(2, *shape))).astype("f4")
    weight, bias = rng.normal(size=(2, shape[1])).astype("f4")
    with thread_budget(threads):
        y, scales = layernorm.forward(x, weight, bias, 1e-5)
        dx, totals = layernorm.backward(dy, x, weight, scales)
    exact, g = x.astype("f8"), dy.astype("f8")
    deviation = np.sqrt(exact.var(1, keepdims=True) + 1e-5)
    d = (exact - exact.mean(1, keepdims=True)) / deviation
    np.testing.assert_allclose(y, d * weight + bias, atol=1e-4)
    np.testing.assert_allclose(totals, [(g * d).sum(0), g.sum(0)], rtol=1e-4, atol=0.05)
    w = g * weight
    slope = (w * d).mean(1, keepdims=True)
    expected = (w - w.mean(1, keepdims=True) - d * slope) / deviation
    np.testing.assert_allclose(dx, expected, atol=0.02)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(700, 65), (3, 5000), (0, 5)])
@pytest.mark.parametrize("response", [Response(5, 0.3, 0.75, 1.0), Response(4, 2.0, 0.5, 0.1)])
def test_rows_are_those_of_float64_of_lrn(shape, threads, response):
    x, dy = np.random.default_rng(0).normal(size=(2, *shape)).astype("f4")
    with thread_budget(threads):
        y, dx = lrn.forward(x, response), lrn.backward(dy, x, response)
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
