"""Elementary functions by libm, in place of those of numpy that are other code with AVX-512.

numpy's own exp, log, sin, cos and tanh of float32 are the same on all processors with AVX2 and FMA.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime import grain
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.passes import flat
from daskdl.kernels.runtime.team import over_rows

Array = NDArray[Any]


def _by(kernel: Any, numpys: Any, *arrays: Any) -> Array:
    """Return a function of floats, which are broadcast; of other numbers it is numpy's."""
    dtype = np.result_type(*arrays)
    if dtype not in (np.float32, np.float64):
        found: Array = numpys(*arrays)
        return found
    whole = np.broadcast_arrays(*(np.asarray(a, dtype) for a in arrays))
    result = np.empty(whole[0].shape, dtype)
    rows = *map(flat, whole), result.reshape(-1)
    if result.size:
        over_rows(kernel, rows, grain.EXPONENTIAL)
    return result


def power(x: Any, exponent: Any) -> Array:
    """Return x to the power of an exponent."""
    if np.ndim(exponent) == 0 and exponent in (-1, 0, 0.5, 1, 2):
        simple: Array = np.power(x, exponent)  # no power at all
        return simple
    return _by(_power, np.power, x, exponent)


def exp(x: Array) -> Array:
    """Return e to the power of x."""
    return _by(_exp, np.exp, x) if np.asarray(x).dtype == np.float64 else np.exp(x)


def log(x: Array) -> Array:
    """Return the natural logarithm."""
    return _by(_log, np.log, x) if np.asarray(x).dtype == np.float64 else np.log(x)


def log1p(x: Array) -> Array:
    """Return log(1 + x)."""
    return _by(_log1p, np.log1p, x)


def expm1(x: Array) -> Array:
    """Return exp(x) - 1."""
    return _by(_expm1, np.expm1, x)


def tan(x: Array) -> Array:
    """Return the tangent."""
    return _by(_tan, np.tan, x)


def arcsin(x: Array) -> Array:
    """Return the inverse of the sine."""
    return _by(_arcsin, np.arcsin, x)


def arccos(x: Array) -> Array:
    """Return the inverse of the cosine."""
    return _by(_arccos, np.arccos, x)


def arctan(x: Array) -> Array:
    """Return the inverse of the tangent."""
    return _by(_arctan, np.arctan, x)


def sinh(x: Array) -> Array:
    """Return the hyperbolic sine."""
    return _by(_sinh, np.sinh, x)


def cosh(x: Array) -> Array:
    """Return the hyperbolic cosine."""
    return _by(_cosh, np.cosh, x)


def arcsinh(x: Array) -> Array:
    """Return the inverse of the hyperbolic sine."""
    return _by(_arcsinh, np.arcsinh, x)


def arccosh(x: Array) -> Array:
    """Return the inverse of the hyperbolic cosine."""
    return _by(_arccosh, np.arccosh, x)


def arctanh(x: Array) -> Array:
    """Return the inverse of the hyperbolic tangent."""
    return _by(_arctanh, np.arctanh, x)


@jit
def _power(x, exponent, result):
    for k in range(result.size):
        result[k] = math.pow(x[k], exponent[k])


@jit
def _exp(x, result):
    for k in range(result.size):
        result[k] = math.exp(x[k])


@jit
def _log(x, result):
    for k in range(result.size):
        result[k] = math.log(x[k])


@jit
def _log1p(x, result):
    for k in range(result.size):
        result[k] = math.log1p(x[k])


@jit
def _expm1(x, result):
    for k in range(result.size):
        result[k] = math.expm1(x[k])


@jit
def _tan(x, result):
    for k in range(result.size):
        result[k] = math.tan(x[k])


@jit
def _sinh(x, result):
    for k in range(result.size):
        result[k] = math.sinh(x[k])


@jit
def _cosh(x, result):
    for k in range(result.size):
        result[k] = math.cosh(x[k])


@jit
def _arcsin(x, result):
    for k in range(result.size):
        result[k] = math.asin(x[k])


@jit
def _arccos(x, result):
    for k in range(result.size):
        result[k] = math.acos(x[k])


@jit
def _arctan(x, result):
    for k in range(result.size):
        result[k] = math.atan(x[k])


@jit
def _arcsinh(x, result):
    for k in range(result.size):
        result[k] = math.asinh(x[k])


@jit
def _arccosh(x, result):
    for k in range(result.size):
        result[k] = math.acosh(x[k])


@jit
def _arctanh(x, result):
    for k in range(result.size):
        result[k] = math.atanh(x[k])
