"""One pass of Adam over the vectors; optim's tests compare whole runs with PyTorch."""

from __future__ import annotations

import numpy as np

from daskdl.kernels.moments import adam_step
from daskdl.kernels.threads import thread_budget


def step(n, factors):
    rng = np.random.default_rng(n)
    w, g, m = rng.normal(size=(3, n)).astype("f4")
    v = rng.random(n).astype("f4")
    kept = [a.copy() for a in (w, g, m, v)]
    results = [np.empty(n, "f4") for _ in range(3)]
    adam_step(w, g, m, v, np.array(factors, "f4"), *results)
    for before, after in zip(kept, (w, g, m, v), strict=True):
        np.testing.assert_array_equal(before, after)
    return kept, results


def test_step_follows_its_formula_and_changes_no_input():
    factors = 0.9, 0.1, 0.99, 0.01, 0.01, 1e-8, 0.999, 0.5
    b1, _, b2, _, rate, epsilon, keep, scale = factors
    (w, g, m, v), (new, mean, square) = step(1001, factors)
    d = scale * g
    first, second = b1 * m + (1 - b1) * d, b2 * v + (1 - b2) * d**2
    np.testing.assert_allclose(mean, first, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(square, second, rtol=1e-5)
    expected = keep * w - rate * first / (np.sqrt(second) + epsilon)
    np.testing.assert_allclose(new, expected, rtol=1e-5, atol=1e-6)


def test_two_threads_give_the_bits_of_one():
    factors, n = (0.9, 0.1, 0.99, 0.01, 0.01, 1e-8, 1.0, 1.0), (1 << 17) + 3
    with thread_budget(1):
        _, alone = step(n, factors)
    with thread_budget(2):
        _, together = step(n, factors)
    for one, two in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, two)
