"""Kernels of Adagrad, RMSprop and Adadelta; optim's tests compare whole runs with PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.optim.adagrad import adadelta, adagrad, rmsprop
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
