"""Kernels of optim methods, each beside numpy."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.optim.adagrad import adadelta, adagrad, rmsprop
from daskdl.kernels.optim.adam import adam, adamax, amsgrad
from daskdl.kernels.optim.sgd import ftrl, momentum, sgd
from daskdl.kernels.optim.steps import step


def vectors(n=1001):
    rng = np.random.default_rng(n)
    return *rng.normal(size=(3, n)), *rng.random((2, n))


def test_adagrad_follows_its_formula():
    w, g, _, v, _ = vectors()
    new, square = step(adagrad, w, g, [v], np.array([[0.5, 0.1, 0.01, 1e-3]]))
    d = 0.5 * g + 0.1 * w
    np.testing.assert_allclose(square, v + d**2, rtol=1e-13)
    expected = w - 0.01 * d / (np.sqrt(v + d**2) + 1e-3)
    np.testing.assert_allclose(new, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("momentum", [None, 0.5])
@pytest.mark.parametrize("centered", [False, True])
def test_rmsprop_follows_its_formula(momentum, centered):
    w, g, v, s, m = vectors()
    s = s + 3
    state = [s, m if centered else None, None if momentum is None else v]
    factors = np.array([[0.5, 0.1, 0.01, 0.9, 0.1, 1e-3, momentum or 0]])
    new, square, mean, velocity = step(rmsprop, w, g, state, factors)
    d = 0.5 * g + 0.1 * w
    expected = 0.9 * s + 0.1 * d**2
    np.testing.assert_allclose(square, expected, rtol=1e-13)
    if centered:
        np.testing.assert_allclose(mean, 0.9 * m + 0.1 * d, rtol=1e-12, atol=1e-15)
        expected = expected - mean**2
    along = d / (np.sqrt(expected) + 1e-3)
    if momentum is not None:
        along = along + momentum * v
        np.testing.assert_allclose(velocity, along, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(new, w - 0.01 * along, rtol=1e-12, atol=1e-14)


def test_adadelta_follows_its_formula():
    w, g, _, s, x = vectors()
    new, square, step_square = step(
        adadelta, w, g, [s, x], np.array([[0.5, 0.1, 0.3, 0.9, 0.1, 1e-3]])
    )
    d = 0.5 * g + 0.1 * w
    expected = 0.9 * s + 0.1 * d**2
    along = np.sqrt(x + 1e-3) / np.sqrt(expected + 1e-3) * d
    np.testing.assert_allclose(square, expected, rtol=1e-13)
    np.testing.assert_allclose(step_square, 0.9 * x + 0.1 * along**2, rtol=1e-12)
    np.testing.assert_allclose(new, w - 0.3 * along, rtol=1e-12, atol=1e-14)


B1, B2, RATE, EPSILON, KEEP = 0.9, 0.99, 0.01, 1e-3, 0.999


def vectors_adam(n=1001):
    rng = np.random.default_rng(n)
    return *rng.normal(size=(3, n)), *rng.random((2, n))


def moments(w, g, m, v):
    d = 0.5 * g + 0.1 * w
    return d, B1 * m + (1 - B1) * d, B2 * v + (1 - B2) * d**2


@pytest.mark.parametrize("direct", [0, 0.2])
def test_adam_follows_its_formula(direct):
    w, g, m, v, _ = vectors_adam()
    factors = np.array([[0.5, 0.1, B1, 1 - B1, B2, 1 - B2, RATE, EPSILON, KEEP, direct]])
    new, mean, square = step(adam, w, g, [m, v], factors)
    d, first, second = moments(w, g, m, v)
    np.testing.assert_allclose(mean, first, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(square, second, rtol=1e-13)
    expected = KEEP * w - (RATE * first + direct * d) / (np.sqrt(second) + EPSILON)
    np.testing.assert_allclose(new, expected, rtol=1e-12, atol=1e-14)


def test_amsgrad_scales_by_the_largest_square():
    w, g, m, v, x = vectors_adam()
    factors = np.array([[0.5, 0.1, B1, 1 - B1, B2, 1 - B2, RATE, EPSILON, KEEP, 0]])
    new, _, square, largest = step(amsgrad, w, g, [m, v, x], factors)
    _, first, second = moments(w, g, m, v)
    np.testing.assert_allclose(square, second, rtol=1e-13)
    np.testing.assert_allclose(largest, np.maximum(second, x), rtol=1e-13)
    expected = KEEP * w - RATE * first / (np.sqrt(np.maximum(second, x)) + EPSILON)
    np.testing.assert_allclose(new, expected, rtol=1e-12, atol=1e-14)


def test_adamax_follows_its_formula():
    w, g, m, u, _ = vectors_adam()
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
    w, g, *state = vectors_adam(5)
    g[2] = np.nan
    factors = np.array([[1, 0, B1, 1 - B1, B2, 1 - B2, RATE, EPSILON, KEEP, 0]])
    new = step(kernel, w, g, [np.abs(s) for s in state[:n_state]], factors)[0]
    np.testing.assert_array_equal(np.isnan(new), np.arange(5) == 2)


def vectors_sgd(n=1001):
    rng = np.random.default_rng(n)
    return rng.normal(size=(4, n))


def run(kernel, w, g, *state, factors):
    return step(kernel, w, g, state, np.array([factors]))


def test_sgd_follows_its_formula():
    w, g, *_ = vectors_sgd()
    (new,) = run(sgd, w, g, factors=(0.5, 0.1, 0.01))
    np.testing.assert_allclose(new, w - 0.01 * (0.5 * g + 0.1 * w), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("nesterov", [0, 1])
def test_momentum_follows_its_formula(nesterov):
    w, g, v, _ = vectors_sgd()
    d = 0.5 * g + 0.1 * w
    new, velocity = run(momentum, w, g, v, factors=(0.5, 0.1, 0.01, 0.9, 0.7, nesterov))
    expected = 0.9 * v + 0.7 * d
    np.testing.assert_allclose(velocity, expected, rtol=1e-13, atol=1e-15)
    along = d + 0.9 * expected if nesterov else expected
    np.testing.assert_allclose(new, w - 0.01 * along, rtol=1e-13, atol=1e-15)


def test_ftrl_follows_its_formula():
    w, g, z, n = vectors_sgd()
    n = np.abs(n)
    new, tilt, total = run(ftrl, w, g, z, n, factors=(0.5, 0.1, 20, 1, 0.8, 0.3))
    d = 0.5 * g + 0.1 * w
    np.testing.assert_allclose(total, n + d**2, rtol=1e-13)
    expected = z + d - 20 * (np.sqrt(total) - np.sqrt(n)) * w
    np.testing.assert_allclose(tilt, expected, rtol=1e-11, atol=1e-12)
    solved = -(tilt - np.sign(tilt) * 0.8) / (20 * (1 + np.sqrt(total)) + 0.3)
    expected = np.where(np.abs(tilt) <= 0.8, 0, solved)
    assert (expected == 0).any()
    np.testing.assert_allclose(new, expected, rtol=1e-11, atol=1e-14)


def test_a_gradient_that_is_not_finite_shows():
    w, g, v, _ = vectors_sgd(5)
    g[1], g[3] = np.inf, np.nan
    new, velocity = run(momentum, w, g, v, factors=(1, 0, 0.01, 0.9, 1, 0))
    assert new[1] == -np.inf
    assert velocity[1] == np.inf
    assert np.isnan(new[3])
    assert np.isfinite(new[[0, 2, 4]]).all()
