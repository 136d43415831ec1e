"""Trigonometry and special functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from daskdl.kernels.runtime.passes import one_pass
from daskdl.kernels.vectors import activations as kernels
from daskdl.kernels.vectors import functions
from daskdl.ops.arguments import of_one_array
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


def _function(
    name: str, meaning: str, function: Any, slope: Any, values: str, at: str = "0.25, 0.5, 0.75"
) -> Any:
    """Make an operation from a function and its slope as a function of x; NaN gives no warning."""

    def compute(x: Array) -> Any:
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            y = function(x)

        def backward(dy: Array):
            with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
                return (dy * slope(x),)

        return y, backward

    return of_one_array(__name__, name, meaning, compute, at, values)


sin = _function("sin", "Sine of radians.", np.sin, np.cos, "0.247, 0.479, 0.682")
cos = _function("cos", "Cosine of radians.", np.cos, lambda x: -np.sin(x), "0.969, 0.878, 0.732")
tan = _function(
    "tan", "Tangent of radians.", functions.tan, lambda x: 1 / np.square(np.cos(x)),
    "0.255, 0.546, 0.932",
)  # fmt: skip
arcsin = _function(
    "arcsin", "Angle (rad) whose sine is x; NaN beyond [-1, 1].", functions.arcsin,
    lambda x: 1 / np.sqrt(1 - x * x), "0.253, 0.524, 0.848",
)  # fmt: skip
arccos = _function(
    "arccos", "Angle (rad) whose cosine is x; NaN beyond [-1, 1].", functions.arccos,
    lambda x: -1 / np.sqrt(1 - x * x), "1.318, 1.047, 0.723",
)  # fmt: skip
arctan = _function(
    "arctan", "Angle (rad) whose tangent is x.", functions.arctan, lambda x: 1 / (1 + x * x),
    "0.245, 0.464, 0.644",
)  # fmt: skip
sinh = _function("sinh", "Hyperbolic sine.", functions.sinh, functions.cosh, "0.253, 0.521, 0.822")
cosh = _function(
    "cosh", "Hyperbolic cosine.", functions.cosh, functions.sinh, "1.031, 1.128, 1.295"
)
arcsinh = _function(
    "arcsinh", "Inverse of the hyperbolic sine.", functions.arcsinh,
    lambda x: 1 / np.sqrt(x * x + 1), "0.247, 0.481, 0.693",
)  # fmt: skip
arccosh = _function(
    "arccosh", "Inverse of the hyperbolic cosine; NaN below 1.", functions.arccosh,
    lambda x: 1 / np.sqrt(x * x - 1), "0.   , 0.962, 1.317", "1.0, 1.5, 2.0",
)  # fmt: skip
arctanh = _function(
    "arctanh", "Inverse of the hyperbolic tangent; NaN beyond [-1, 1].", functions.arctanh,
    lambda x: 1 / (1 - x * x), "0.255, 0.549, 0.973",
)  # fmt: skip


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
    """Raise an array to the powers of another, broadcast; NaN where the result is not real.

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
    """Remainder of a / b, broadcast, with the sign of b; of a if the quotient is ``truncated``.

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
