"""Elementary functions, element by element, and choices between two arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl.errors import SettingsError
from daskdl.kernels.vectors import functions
from daskdl.ops.arithmetic import arrays_of, unbroadcast
from daskdl.tensor import Array, op

__all__ = ["abs", "clip", "exp", "log", "maximum", "minimum", "power", "sqrt", "square", "where"]


@op
def exp(x: Array):
    """E to the power of x.

    Examples
    --------
    >>> ops.exp(np.array([-1.0, 0.5, 2.0], np.float32)).data.round(3)
    array([0.368, 1.649, 7.389], dtype=float32)
    """
    y = np.exp(x)
    return y, lambda dy: (dy * y,)


@op
def log(x: Array):
    """Natural logarithm; -inf at 0 and NaN below, without a warning.

    Examples
    --------
    >>> ops.log(np.array([1.0, np.e])).data.round(6)
    array([0., 1.])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        y = np.log(x)
    return y, lambda dy: (_quotient(dy, x),)


@op
def sqrt(x: Array):
    """Square root; NaN below 0, and an infinite slope at 0.

    Examples
    --------
    >>> ops.sqrt(np.array([0.25, 0.5, 0.75], np.float32)).data.round(3)
    array([0.5  , 0.707, 0.866], dtype=float32)
    """
    with np.errstate(invalid="ignore"):
        y = np.sqrt(x)
    return y, lambda dy: (_quotient(dy, 2 * y),)


@op
def square(x: Array):
    """X times x.

    Examples
    --------
    >>> ops.square(np.array([-1.0, 0.5, 2.0], np.float32)).data.round(3)
    array([1.  , 0.25, 4.  ], dtype=float32)
    """
    return x * x, lambda dy: (2 * dy * x,)


@op
def abs(x: Array):
    """Magnitude; the gradient at 0 is 0.

    Examples
    --------
    >>> ops.abs(np.array([-1.0, 0.5, 2.0], np.float32)).data.round(3)
    array([1. , 0.5, 2. ], dtype=float32)
    """
    return np.abs(x), lambda dy: (dy * np.sign(x),)


@op
def power(x: Array, *, exponent: float):
    """X to the power of a number; NaN where that is no real number.

    Examples
    --------
    >>> ops.power(np.array([1.0, 2.0, 3.0]), exponent=2).data
    array([1., 4., 9.])
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        y = functions.power(x, _setting(x, exponent))

    def backward(dy: Array):
        if exponent == 0:
            return (np.zeros_like(x),)
        with np.errstate(invalid="ignore", divide="ignore"):
            slope = functions.power(x, _setting(x, exponent - 1))
        return (dy * (_setting(x, exponent) * slope),)

    return y, backward


@op
def clip(x: Array, *, low: float | None = None, high: float | None = None):
    """X from ``low`` to ``high``; the gradient passes where x is in between, borders included.

    Examples
    --------
    >>> ops.clip(np.array([-1.0, 0.5, 2.0], np.float32)).data.round(3)
    array([-1. ,  0.5,  2. ], dtype=float32)
    """
    if low is not None and high is not None and low > high:
        raise SettingsError(
            f"clip: expected low <= high, found {low} and {high}; change the two about"
        )
    least = -np.inf if low is None else low
    most = np.inf if high is None else high
    return np.clip(x, _setting(x, least), _setting(x, most)), lambda dy: (
        dy * ((x >= least) & (x <= most)),
    )


def _setting(x: Array, value: float) -> Any:
    """Return a number in the dtype of ``x``; for whole numbers, which would round it, a float64."""
    return x.dtype.type(value) if x.dtype.kind == "f" else np.float64(value)


@op
def maximum(a: Array, b: Array):
    """Return the larger of two, broadcast; of equals each takes half of the gradient.

    Examples
    --------
    >>> a, b = np.array([1.0, 2.0]), np.array([3.0, -4.0])
    >>> ops.maximum(a, b).data
    array([3., 2.])
    """
    return _extreme(a, b, np.maximum, np.greater)


@op
def minimum(a: Array, b: Array):
    """Return the smaller of two, broadcast; of equals each takes half of the gradient.

    Examples
    --------
    >>> a, b = np.array([1.0, 2.0]), np.array([3.0, -4.0])
    >>> ops.minimum(a, b).data
    array([ 1., -4.])
    """
    return _extreme(a, b, np.minimum, np.less)


@op
def where(condition: Array, a: Array, b: Array):
    """Take a where ``condition`` (bool) holds and b elsewhere, all three broadcast.

    Examples
    --------
    >>> a, b = np.array([1.0, 2.0]), np.array([3.0, -4.0])
    >>> ops.where(a > b, a, b).data
    array([3., 2.])
    """
    condition = np.asarray(condition, bool)
    a, b = arrays_of(a, b)

    def backward(dy: Array):
        return (
            None,
            lambda: unbroadcast(np.where(condition, dy, 0).astype(dy.dtype, copy=False), a.shape),
            lambda: unbroadcast(np.where(condition, 0, dy).astype(dy.dtype, copy=False), b.shape),
        )

    return np.where(condition, a, b), backward


def _extreme(a: Any, b: Any, choose: Any, beyond: Any):
    a, b = arrays_of(a, b)
    y = choose(a, b)

    def backward(dy: Array):
        share = np.where(a == b, dy.dtype.type(0.5), beyond(a, b).astype(dy.dtype))
        return (
            lambda: unbroadcast(dy * share, a.shape),
            lambda: unbroadcast(dy * (1 - share), b.shape),
        )

    return y, backward


def _quotient(a: Array, b: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return a / b
