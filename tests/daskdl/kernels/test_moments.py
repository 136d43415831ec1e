"""One pass over the vectors for each method; optim's tests compare whole runs with PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.memory import LARGE
from daskdl.kernels.moments import adagrad_step, adam_step, momentum_step, sgd_step
from daskdl.kernels.threads import thread_budget


def vectors(n):
    rng = np.random.default_rng(n)
    return *rng.normal(size=(3, n)).astype("f4"), rng.random(n).astype("f4")


def run(step, inputs, factors):
    """Return what a step returns as a list, having seen that it changed no input."""
    kept = [a.copy() for a in inputs]
    results = step(*inputs, np.array(factors, "f4"))
    for before, after in zip(kept, inputs, strict=True):
        np.testing.assert_array_equal(before, after)
    return results if isinstance(results, list) else [results]


def test_adam_follows_its_formula():
    b1, b2, rate, epsilon, keep, scale = 0.9, 0.99, 0.01, 1e-8, 0.999, 0.5
    w, g, m, v = vectors(1001)
    factors = b1, 1 - b1, b2, 1 - b2, rate, epsilon, keep, scale
    new, mean, square = run(adam_step, (w, g, m, v), factors)
    d = scale * g
    first, second = b1 * m + (1 - b1) * d, b2 * v + (1 - b2) * d**2
    np.testing.assert_allclose(mean, first, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(square, second, rtol=1e-5)
    expected = keep * w - rate * first / (np.sqrt(second) + epsilon)
    np.testing.assert_allclose(new, expected, rtol=1e-5, atol=1e-6)


def test_sgd_follows_its_formula():
    w, g, v, _ = vectors(1001)
    d = g + 0.1 * w
    (new,) = run(sgd_step, (w, g), (0.01, 0.1))
    np.testing.assert_allclose(new, w - 0.01 * d, rtol=1e-5, atol=1e-6)
    for nesterov in (0, 1):
        new, velocity = run(momentum_step, (w, g, v), (0.01, 0.1, 0.9, nesterov))
        expected = 0.9 * v + d
        np.testing.assert_allclose(velocity, expected, rtol=1e-5, atol=1e-6)
        step = d + 0.9 * expected if nesterov else expected
        np.testing.assert_allclose(new, w - 0.01 * step, rtol=1e-5, atol=1e-6)


def test_adagrad_follows_its_formula():
    w, g, _, v = vectors(1001)
    d = g + 0.1 * w
    new, square = run(adagrad_step, (w, g, v), (0.01, 0.1, 1e-3))
    np.testing.assert_allclose(square, v + d**2, rtol=1e-5)
    np.testing.assert_allclose(new, w - 0.01 * d / (np.sqrt(v + d**2) + 1e-3), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n", [(1 << 17) + 3, LARGE // 4 + 5])
@pytest.mark.parametrize(
    ("step", "count", "factors"),
    [
        (adam_step, 4, (0.9, 0.1, 0.99, 0.01, 0.01, 1e-8, 1.0, 1.0)),
        (momentum_step, 3, (0.01, 0.1, 0.9, 1)),
    ],
)
def test_two_threads_give_the_bits_of_one(step, count, factors, n):
    inputs = [np.abs(a) for a in vectors(n)[:count]]
    with thread_budget(1):
        alone = run(step, inputs, factors)
    with thread_budget(2):
        together = run(step, inputs, factors)
    for one, two in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_gradient_that_is_not_finite_shows():
    w, g, v, _ = vectors(5)
    g[1], g[3] = np.inf, np.nan
    new, velocity = run(momentum_step, (w, g, v), (0.01, 0, 0.9, 0))
    assert new[1] == -np.inf
    assert velocity[1] == np.inf
    assert np.isnan(new[3])
    assert np.isfinite(new[[0, 2, 4]]).all()
