"""The error function, powers of one array by another, and the rest of a division."""

from __future__ import annotations

import math

import numpy as np

from daskdl.kernels.runtime.passes import one_pass
from daskdl.kernels.vectors import activations as kernels
from daskdl.kernels.vectors import functions
from daskdl.ops.activations import check_float
from daskdl.ops.arithmetic import unbroadcast
from daskdl.tensor import Array, op

__all__ = ["erf", "pow", "remainder"]


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
