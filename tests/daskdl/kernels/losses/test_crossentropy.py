"""Cross entropy of weighted rows and soft targets by its formula; threads change nothing."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from daskdl.kernels.losses import crossentropy, softmax
from daskdl.kernels.runtime.threads import thread_budget


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
    found = crossentropy.gradient(x, labels, scales, factors, spread, q)
    p = special.softmax(x, -1)
    expected = factors[:, None] * (p - np.eye(3)[labels]) + spread[:, None] * (q.sum() * p - q)
    expected[1] = 0
    np.testing.assert_allclose(found, expected, atol=1e-13)


def test_threads_do_not_change_the_bits():
    rng = np.random.default_rng(2)
    x, q = rng.random((2, 700, 90), np.float32)
    labels, factors = np.arange(700) % 90, rng.random(700)
    results = []
    for threads in (1, 2):
        with thread_budget(threads):
            losses, scales = crossentropy.soft(x, q)
            soft = crossentropy.soft_gradient(x, q, scales, factors)
            hard = crossentropy.gradient(x, labels, scales, factors, factors, q[0])
            results.append((losses, soft, hard))
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)


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
            found = crossentropy.nll_gradient(x, labels, shares, slopes)
            np.testing.assert_array_equal(found, expected)
            assert crossentropy.nll(x, np.append(labels[1:], 3), shares) is None
