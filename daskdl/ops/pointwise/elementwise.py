"""Functions of each number alone, and comparisons with a threshold."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl.errors import SettingsError
from daskdl.kernels.vectors import dropout as kernel
from daskdl.kernels.vectors import functions
from daskdl.ops.pointwise.activations import check_float
from daskdl.ops.pointwise.arithmetic import arrays_of, unbroadcast
from daskdl.tensor import Array, op

__all__ = [
    "abs",
    "clip",
    "dropout",
    "exp",
    "hard_shrink",
    "log",
    "maximum",
    "minimum",
    "power",
    "soft_shrink",
    "softsign",
    "sqrt",
    "square",
    "threshold",
    "where",
]


@op
def exp(x: Array):
    """Exponential: e to the power of ``x``.

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
    """Square: ``x * x``.

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
    """Power: ``x`` to the power of a number; NaN where the result is not real.

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
    """Limit ``x`` to ``low`` and ``high``; the gradient passes between them, limits included.

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
    """Return a number in the dtype of ``x``; as float64 for integers, which would round it."""
    return x.dtype.type(value) if x.dtype.kind == "f" else np.float64(value)


@op
def maximum(a: Array, b: Array):
    """Return the larger of two, broadcast; equal ones get half of the gradient each.

    Examples
    --------
    >>> a, b = np.array([1.0, 2.0]), np.array([3.0, -4.0])
    >>> ops.maximum(a, b).data
    array([3., 2.])
    """
    return _extreme(a, b, np.maximum, np.greater)


@op
def minimum(a: Array, b: Array):
    """Return the smaller of two, broadcast; equal ones get half of the gradient each.

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


@op
def threshold(x: Array, *, threshold: float = 0.0, value: float = 0.0):
    """Threshold: ``x`` where above ``threshold``, ``value`` elsewhere.

    Examples
    --------
    >>> ops.threshold(np.array([-1.0, 0.5, 2.0], np.float32)).data.round(3)
    array([0. , 0.5, 2. ], dtype=float32)
    """
    check_float("threshold", x)
    above = ~(x <= threshold)  # NaN is kept
    return np.where(above, x, x.dtype.type(value)), lambda dy: (dy * above,)


@op
def hard_shrink(x: Array, *, edge: float = 0.5):
    """Hard shrink: ``x`` where it is more than ``edge`` away from 0, 0 elsewhere.

    Examples
    --------
    >>> ops.hard_shrink(np.array([-1.0, 0.5, 2.0], np.float32)).data.round(3)
    array([-1.,  0.,  2.], dtype=float32)
    """
    check_float("hard_shrink", x)
    mask = ~(np.abs(x) <= edge)  # NaN is kept
    return x * mask, lambda dy: (dy * mask,)


@op
def soft_shrink(x: Array, *, edge: float = 0.5):
    """Soft shrink: ``x`` moved by ``edge`` towards 0, and 0 where it would cross 0.

    Examples
    --------
    >>> ops.soft_shrink(np.array([-1.0, 0.2, 2.0])).data + 0.0
    array([-0.5,  0. ,  1.5])
    """
    check_float("soft_shrink", x)
    mask = ~(np.abs(x) <= edge)
    return (x - np.sign(x) * x.dtype.type(edge)) * mask, lambda dy: (dy * mask,)


@op
def softsign(x: Array):
    """Softsign: ``x / (1 + abs(x))``.

    Examples
    --------
    >>> ops.softsign(np.array([0.25, 0.5, 0.75], np.float32)).data.round(3)
    array([0.2  , 0.333, 0.429], dtype=float32)
    """
    check_float("softsign", x)
    scale = 1 + np.abs(x)
    return x / scale, lambda dy: (dy / (scale * scale),)


@op
def dropout(x: Array, *, rate: float, seed: int, counter: int = 0):
    """Set about a share ``rate`` of ``x`` to zero and divide the others by ``1 - rate``.

    N. Srivastava et al., JMLR 15 (2014). The choice depends only on ``seed``, ``counter`` and the
    position in ``x``, not on threads; ``counter`` distinguishes calls with one seed.

    Examples
    --------
    >>> dropped = ops.dropout(np.ones(1000, np.float32), rate=0.5, seed=0).data
    >>> sorted(set(dropped.tolist()))
    [0.0, 2.0]
    """
    check_float("dropout", x)
    check_rate("dropout", rate)
    if rate == 0:
        return x, lambda dy: (dy,)
    y = kernel.dropout(x, rate, seed, counter)
    return y, lambda dy: (kernel.dropout(dy, rate, seed, counter),)


def check_rate(where: str, rate: float) -> None:
    """Raise a SettingsError unless a rate is from 0 to 1."""
    if not 0 <= rate <= 1:
        raise SettingsError(
            f"{where}: expected 0 <= rate <= 1, found {rate!r}; rate is the part that is dropped"
        )
