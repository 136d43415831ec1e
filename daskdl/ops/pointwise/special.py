"""Trigonometry and special functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from daskdl.kernels.runtime.passes import one_pass
from daskdl.kernels.vectors import activations as kernels
from daskdl.kernels.vectors import functions
from daskdl.ops.pointwise.activations import check_float
from daskdl.ops.pointwise.arithmetic import unbroadcast
from daskdl.tensor import Array, op

__all__ = [
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctanh",
    "cos",
    "cosh",
    "erf",
    "pow",
    "remainder",
    "sin",
    "sinh",
    "tan",
]


def _function(function: Any, slope: Any, x: Array):
    """Return ``function(x)`` and the backward that multiplies by ``slope(x)``; NaN is silent."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        y = function(x)

    def backward(dy: Array):
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            return (dy * slope(x),)

    return y, backward


@op
def sin(x: Array):
    """Sine of radians.

    Examples
    --------
    >>> ops.sin(np.array([0.25, 0.5, 0.75], np.float32)).data.round(3)
    array([0.247, 0.479, 0.682], dtype=float32)
    """
    return _function(np.sin, np.cos, x)


@op
def cos(x: Array):
    """Cosine of radians.

    Examples
    --------
    >>> ops.cos(np.array([0.25, 0.5, 0.75], np.float32)).data.round(3)
    array([0.969, 0.878, 0.732], dtype=float32)
    """
    return _function(np.cos, lambda x: -np.sin(x), x)


@op
def tan(x: Array):
    """Tangent of radians.

    Examples
    --------
    >>> ops.tan(np.array([-1.0, 0.5, 2.0], np.float32)).data.round(3)
    array([-1.557,  0.546, -2.185], dtype=float32)
    """
    return _function(functions.tan, lambda x: 1 / np.square(np.cos(x)), x)


@op
def arcsin(x: Array):
    """Angle (rad) whose sine is x; NaN beyond [-1, 1].

    Examples
    --------
    >>> ops.arcsin(np.array([0.25, 0.5, 0.75], np.float32)).data.round(3)
    array([0.253, 0.524, 0.848], dtype=float32)
    """
    return _function(functions.arcsin, lambda x: 1 / np.sqrt(1 - x * x), x)


@op
def arccos(x: Array):
    """Angle (rad) whose cosine is x; NaN beyond [-1, 1].

    Examples
    --------
    >>> ops.arccos(np.array([0.25, 0.5, 0.75], np.float32)).data.round(3)
    array([1.318, 1.047, 0.723], dtype=float32)
    """
    return _function(functions.arccos, lambda x: -1 / np.sqrt(1 - x * x), x)


@op
def arctan(x: Array):
    """Angle (rad) whose tangent is x.

    Examples
    --------
    >>> ops.arctan(np.array([0.25, 0.5, 0.75], np.float32)).data.round(3)
    array([0.245, 0.464, 0.644], dtype=float32)
    """
    return _function(functions.arctan, lambda x: 1 / (1 + x * x), x)


@op
def sinh(x: Array):
    """Hyperbolic sine.

    Examples
    --------
    >>> ops.sinh(np.array([-1.0, 0.5, 2.0], np.float32)).data.round(3)
    array([-1.175,  0.521,  3.627], dtype=float32)
    """
    return _function(functions.sinh, functions.cosh, x)


@op
def cosh(x: Array):
    """Hyperbolic cosine.

    Examples
    --------
    >>> ops.cosh(np.array([-1.0, 0.5, 2.0], np.float32)).data.round(3)
    array([1.543, 1.128, 3.762], dtype=float32)
    """
    return _function(functions.cosh, functions.sinh, x)


@op
def arcsinh(x: Array):
    """Inverse of the hyperbolic sine.

    Examples
    --------
    >>> ops.arcsinh(np.array([0.25, 0.5, 0.75], np.float32)).data.round(3)
    array([0.247, 0.481, 0.693], dtype=float32)
    """
    return _function(functions.arcsinh, lambda x: 1 / np.sqrt(x * x + 1), x)


@op
def arccosh(x: Array):
    """Inverse of the hyperbolic cosine; NaN below 1.

    Examples
    --------
    >>> ops.arccosh(np.array([1.0, np.cosh(2.0)])).data.round(3)
    array([0., 2.])
    """
    return _function(functions.arccosh, lambda x: 1 / np.sqrt(x * x - 1), x)


@op
def arctanh(x: Array):
    """Inverse of the hyperbolic tangent; NaN beyond [-1, 1].

    Examples
    --------
    >>> ops.arctanh(np.array([0.25, 0.5, 0.75], np.float32)).data.round(3)
    array([0.255, 0.549, 0.973], dtype=float32)
    """
    return _function(functions.arctanh, lambda x: 1 / (1 - x * x), x)


@op
def erf(x: Array):
    """Error function, 2 / sqrt(pi) times the integral of exp(-t²) from 0 to x.

    Examples
    --------
    >>> ops.erf(np.array([0.25, 0.5, 0.75], np.float32)).data.round(3)
    array([0.276, 0.52 , 0.711], dtype=float32)
    """
    x = np.asarray(x)
    check_float("erf", x)
    scale = x.dtype.type(2 / math.sqrt(math.pi))
    (y,) = one_pass(kernels.erf, x)
    return y, lambda dy: (dy * scale * np.exp(-x * x),)


@op
def pow(base: Array, exponent: Array):
    """Raise an array to the powers of another, broadcast; NaN where that is no real number.

    The result has the dtype of ``base``. Where ``base`` is 0 the gradient to ``exponent`` is 0.

    Examples
    --------
    >>> ops.pow(np.array([2.0, 3.0]), np.array([3.0, 2.0])).data
    array([8., 9.])
    """
    base, exponent = np.asarray(base), np.asarray(exponent)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        y = functions.power(base, exponent).astype(base.dtype, copy=False)

    def to_base(dy: Array) -> Array:
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            slope = np.where(exponent == 0, 0, exponent * functions.power(base, exponent - 1))
        return unbroadcast((dy * slope).astype(base.dtype, copy=False), base.shape)

    def to_exponent(dy: Array) -> Array:
        with np.errstate(invalid="ignore", divide="ignore"):
            slope = np.where(base == 0, 0, y * np.log(base))
        return unbroadcast((dy * slope).astype(exponent.dtype, copy=False), exponent.shape)

    return y, lambda dy: (lambda: to_base(dy), lambda: to_exponent(dy))


@op
def remainder(a: Array, b: Array, *, truncated: bool = False):
    """Rest of a / b, broadcast, with the sign of b; of a if the quotient is ``truncated``.

    Examples
    --------
    >>> ops.remainder(np.array([5.0, -5.0]), np.array([3.0, 3.0])).data
    array([2., 1.])
    """
    a, b = np.asarray(a), np.asarray(b)
    with np.errstate(invalid="ignore", divide="ignore"):
        y = np.fmod(a, b) if truncated else np.mod(a, b)

    def to_divisor(dy: Array) -> Array:
        with np.errstate(invalid="ignore", divide="ignore"):
            quotient = np.trunc(a / b) if truncated else np.floor(a / b)
        return unbroadcast(-dy * quotient, b.shape)

    return y, lambda dy: (lambda: unbroadcast(dy, a.shape), lambda: to_divisor(dy))
