"""Kernels of Adam and its relatives; optim's tests compare whole runs with PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.optim.adam import adam, adamax, amsgrad
from daskdl.kernels.optim.steps import step

B1, B2, RATE, EPSILON, KEEP = 0.9, 0.99, 0.01, 1e-3, 0.999


def vectors(n=1001):
    rng = np.random.default_rng(n)
    return *rng.normal(size=(3, n)), *rng.random((2, n))


def moments(w, g, m, v):
    d = 0.5 * g + 0.1 * w
    return d, B1 * m + (1 - B1) * d, B2 * v + (1 - B2) * d**2


@pytest.mark.parametrize("direct", [0, 0.2])
def test_adam_follows_its_formula(direct):
    w, g, m, v, _ = vectors()
    factors = np.array([[0.5, 0.1, B1, 1 - B1, B2, 1 - B2, RATE, EPSILON, KEEP, direct]])
    new, mean, square = step(adam, w, g, [m, v], factors)
    d, first, second = moments(w, g, m, v)
    np.testing.assert_allclose(mean, first, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(square, second, rtol=1e-13)
    expected = KEEP * w - (RATE * first + direct * d) / (np.sqrt(second) + EPSILON)
    np.testing.assert_allclose(new, expected, rtol=1e-12, atol=1e-14)


def test_amsgrad_scales_by_the_largest_square():
    w, g, m, v, x = vectors()
    factors = np.array([[0.5, 0.1, B1, 1 - B1, B2, 1 - B2, RATE, EPSILON, KEEP, 0]])
    new, _, square, largest = step(amsgrad, w, g, [m, v, x], factors)
    _, first, second = moments(w, g, m, v)
    np.testing.assert_allclose(square, second, rtol=1e-13)
    np.testing.assert_allclose(largest, np.maximum(second, x), rtol=1e-13)
    expected = KEEP * w - RATE * first / (np.sqrt(np.maximum(second, x)) + EPSILON)
    np.testing.assert_allclose(new, expected, rtol=1e-12, atol=1e-14)


def test_adamax_follows_its_formula():
    w, g, m, u, _ = vectors()
    u = np.abs(u)
    factors = np.array([[0.5, 0.1, B1, 1 - B1, B2, RATE, EPSILON]])
    new, mean, largest = step(adamax, w, g, [m, u], factors)
    d, first, _ = moments(w, g, m, u)
    expected = np.maximum(B2 * u, np.abs(d) + EPSILON)
    np.testing.assert_allclose(mean, first, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(largest, expected, rtol=1e-13)
    np.testing.assert_allclose(new, w - RATE * first / expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("kernel", "n_state"), [(adam, 2), (amsgrad, 3), (adamax, 2)])
def test_a_gradient_that_is_not_a_number_shows(kernel, n_state):
    w, g, *state = vectors(5)
    g[2] = np.nan
    factors = np.array([[1, 0, B1, 1 - B1, B2, 1 - B2, RATE, EPSILON, KEEP, 0]])
    new = step(kernel, w, g, [np.abs(s) for s in state[:n_state]], factors)[0]
    np.testing.assert_array_equal(np.isnan(new), np.arange(5) == 2)
