"""Kernels of steps along the gradient; optim's tests compare whole runs with other sources."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.optim.sgd import ftrl, momentum, sgd
from daskdl.kernels.optim.steps import step


def vectors(n=1001):
    rng = np.random.default_rng(n)
    return rng.normal(size=(4, n))


def run(kernel, w, g, *state, factors):
    return step(kernel, w, g, state, np.array([factors]))


def test_sgd_follows_its_formula():
    w, g, *_ = vectors()
    (new,) = run(sgd, w, g, factors=(0.5, 0.1, 0.01))
    np.testing.assert_allclose(new, w - 0.01 * (0.5 * g + 0.1 * w), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("nesterov", [0, 1])
def test_momentum_follows_its_formula(nesterov):
    w, g, v, _ = vectors()
    d = 0.5 * g + 0.1 * w
    new, velocity = run(momentum, w, g, v, factors=(0.5, 0.1, 0.01, 0.9, 0.7, nesterov))
    expected = 0.9 * v + 0.7 * d
    np.testing.assert_allclose(velocity, expected, rtol=1e-13, atol=1e-15)
    along = d + 0.9 * expected if nesterov else expected
    np.testing.assert_allclose(new, w - 0.01 * along, rtol=1e-13, atol=1e-15)


def test_ftrl_follows_its_formula():
    w, g, z, n = vectors()
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
    w, g, v, _ = vectors(5)
    g[1], g[3] = np.inf, np.nan
    new, velocity = run(momentum, w, g, v, factors=(1, 0, 0.01, 0.9, 1, 0))
    assert new[1] == -np.inf
    assert velocity[1] == np.inf
    assert np.isnan(new[3])
    assert np.isfinite(new[[0, 2, 4]]).all()
