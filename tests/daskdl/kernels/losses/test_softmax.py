"""Softmax by rows against SciPy: accuracy, and rows that are not finite."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from daskdl.kernels.losses import softmax as kernels
from daskdl.kernels.runtime.threads import thread_budget


@pytest.mark.parametrize("shape", [(1, 1), (5, 2), (3, 7, 33), (2, 5000), (0, 4), (3, 0)])
@pytest.mark.parametrize(("dtype", "tolerance"), [("f4", 3e-6), ("f8", 1e-12)])
@pytest.mark.parametrize("scale", [1, 30])
def test_it_is_scipys(shape, dtype, tolerance, scale):
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


def test_threads_do_not_change_the_bits():
    x, dy = np.random.default_rng(0).standard_normal((2, 600, 100), np.float32)
    labels = np.arange(600) % 100
    results = []
    for threads in (1, 2):
        with thread_budget(threads):
            y = kernels.softmax(x)
            losses, scales = kernels.cross_entropy(x, labels)
            results.append(
                (
                    y,
                    kernels.softmax_gradient(y, dy),
                    kernels.log_softmax_gradient(kernels.log_softmax(x), dy),
                    losses,
                    kernels.cross_entropy_gradient(x, labels, scales, 0.5),
                )
            )
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)
