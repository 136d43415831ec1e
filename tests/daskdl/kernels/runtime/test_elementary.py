"""Elementary functions against float64: the last digits, the far ends, and NaN."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

from daskdl.kernels.runtime import elementary
from daskdl.kernels.runtime.jit import fusedjit


def over(function, part=None):
    """Return a kernel that writes a function of x to y; of several results, only ``part``."""
    if part is None:

        @fusedjit
        def kernel(x, y):
            for k in range(x.size):
                y[k] = function(x[k])
    else:

        @fusedjit
        def kernel(x, y):
            for k in range(x.size):
                y[k] = function(x[k])[part]

    return kernel


tail = over(elementary.normal_tail, 0)
SMALL = np.concatenate([-np.geomspace(1e-30, 1, 20001), np.geomspace(1e-30, 1, 20001)])
WIDE = np.concatenate([SMALL, np.linspace(-86, 86, 200001)])
#: Function, the truth, and arguments for which float32 has normal results.
CASES = {
    "exponential": (over(elementary.exponential), np.exp, WIDE[WIDE <= 0]),
    "logistic": (over(elementary.logistic), special.expit, WIDE),
    "softplus": (over(elementary.softplus), lambda x: np.logaddexp(0, x), WIDE),
    "expm1": (over(elementary.expm1), np.expm1, WIDE[WIDE <= 0]),
    "tail": (tail, lambda x: special.ndtr(-np.abs(x)), np.linspace(-4, 4, 200001)),
    "tanh": (over(elementary.tanh), np.tanh, WIDE),
}
each = pytest.mark.parametrize("name", CASES)


@pytest.mark.slow
@each
@pytest.mark.parametrize(("dtype", "tolerance"), [("f4", 1e-6), ("f8", 1e-13)])
def test_relative_error(name, dtype, tolerance):
    function, truth, where = CASES[name]
    x = where.astype(dtype)
    y = np.empty_like(x)
    function(x, y)
    np.testing.assert_allclose(y, truth(x.astype("f8")), rtol=tolerance, atol=0)
    assert name != "tanh" or np.abs(y).max() <= 1


@each
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_nan_and_minus_infinity(name, dtype):
    function, truth, _ = CASES[name]
    y = np.empty(2, dtype)
    function(np.array([np.nan, -np.inf], dtype), y)
    assert math.isnan(y[0])
    assert y[1] == truth(-np.inf)


def test_far_tail():
    """There the rounding error of x^2 / 2 becomes a relative error of the result."""
    x = np.linspace(-12.9, 12.9, 20001).astype("f4")
    y = np.empty_like(x)
    tail(x, y)
    exact = special.ndtr(-np.abs(x.astype("f8")))
    assert (np.abs(y / exact - 1) <= 1e-6 + 6e-8 * x.astype("f8") ** 2).all()
