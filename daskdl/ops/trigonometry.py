"""Trigonometric and hyperbolic functions and their inverses, element by element."""

from __future__ import annotations

from typing import Any

import numpy as np

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
    """Sine of radians."""
    return _function(np.sin, np.cos, x)


@op
def cos(x: Array):
    """Cosine of radians."""
    return _function(np.cos, lambda x: -np.sin(x), x)


@op
def tan(x: Array):
    """Tangent of radians."""
    return _function(np.tan, lambda x: 1 / np.square(np.cos(x)), x)


@op
def arcsin(x: Array):
    """Angle (rad) whose sine is x; NaN beyond [-1, 1]."""
    return _function(np.arcsin, lambda x: 1 / np.sqrt(1 - x * x), x)


@op
def arccos(x: Array):
    """Angle (rad) whose cosine is x; NaN beyond [-1, 1]."""
    return _function(np.arccos, lambda x: -1 / np.sqrt(1 - x * x), x)


@op
def arctan(x: Array):
    """Angle (rad) whose tangent is x."""
    return _function(np.arctan, lambda x: 1 / (1 + x * x), x)


@op
def sinh(x: Array):
    """Hyperbolic sine."""
    return _function(np.sinh, np.cosh, x)


@op
def cosh(x: Array):
    """Hyperbolic cosine."""
    return _function(np.cosh, np.sinh, x)


@op
def arcsinh(x: Array):
    """Inverse of the hyperbolic sine."""
    return _function(np.arcsinh, lambda x: 1 / np.sqrt(x * x + 1), x)


@op
def arccosh(x: Array):
    """Inverse of the hyperbolic cosine; NaN below 1."""
    return _function(np.arccosh, lambda x: 1 / np.sqrt(x * x - 1), x)


@op
def arctanh(x: Array):
    """Inverse of the hyperbolic tangent; NaN beyond [-1, 1]."""
    return _function(np.arctanh, lambda x: 1 / (1 - x * x), x)
