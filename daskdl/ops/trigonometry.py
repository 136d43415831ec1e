"""Trigonometric and hyperbolic functions and their inverses, element by element."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl.kernels.vectors import functions
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
