"""Activations with thresholds: numbers below are replaced, cut to zero, or drawn nearer."""

from __future__ import annotations

import numpy as np

from daskdl.ops.activations import check_float
from daskdl.tensor import Array, op

__all__ = ["hard_shrink", "soft_shrink", "softsign", "threshold"]


@op
def threshold(x: Array, *, threshold: float = 0.0, value: float = 0.0):
    """X where above ``threshold``, ``value`` elsewhere.

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
    """X where further than ``edge`` from 0, 0 elsewhere.

    Examples
    --------
    >>> ops.hard_shrink(np.array([-1.0, 0.5, 2.0], np.float32)).data.round(3)
    array([-1.,  0.,  2.], dtype=float32)
    """
    check_float("hard_shrink", x)
    kept = ~(np.abs(x) <= edge)  # NaN is kept
    return x * kept, lambda dy: (dy * kept,)


@op
def soft_shrink(x: Array, *, edge: float = 0.5):
    """X moved by ``edge`` towards 0, and 0 where it would pass it.

    Examples
    --------
    >>> ops.soft_shrink(np.array([-1.0, 0.2, 2.0])).data + 0.0
    array([-0.5,  0. ,  1.5])
    """
    check_float("soft_shrink", x)
    kept = ~(np.abs(x) <= edge)
    return (x - np.sign(x) * x.dtype.type(edge)) * kept, lambda dy: (dy * kept,)


@op
def softsign(x: Array):
    """X / (1 + abs(x)).

    Examples
    --------
    >>> ops.softsign(np.array([0.25, 0.5, 0.75], np.float32)).data.round(3)
    array([0.2  , 0.333, 0.429], dtype=float32)
    """
    check_float("softsign", x)
    scale = 1 + np.abs(x)
    return x / scale, lambda dy: (dy / (scale * scale),)
