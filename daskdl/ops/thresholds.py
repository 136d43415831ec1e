"""Activations with thresholds: numbers below are replaced, cut to zero, or drawn nearer."""

from __future__ import annotations

import numpy as np

from daskdl.ops.activations import check_float
from daskdl.tensor import Array, op

__all__ = ["hard_shrink", "soft_shrink", "softsign", "threshold"]


@op
def threshold(x: Array, *, threshold: float = 0.0, value: float = 0.0):
    """X where above ``threshold``, ``value`` elsewhere."""
    check_float("threshold", x)
    above = ~(x <= threshold)  # NaN is kept
    return np.where(above, x, x.dtype.type(value)), lambda dy: (dy * above,)


@op
def hard_shrink(x: Array, *, edge: float = 0.5):
    """X where further than ``edge`` from 0, 0 elsewhere."""
    check_float("hard_shrink", x)
    kept = ~(np.abs(x) <= edge)  # NaN is kept
    return x * kept, lambda dy: (dy * kept,)


@op
def soft_shrink(x: Array, *, edge: float = 0.5):
    """X moved by ``edge`` towards 0, and 0 where it would pass it."""
    check_float("soft_shrink", x)
    kept = ~(np.abs(x) <= edge)
    return (x - np.sign(x) * x.dtype.type(edge)) * kept, lambda dy: (dy * kept,)


@op
def softsign(x: Array):
    """X / (1 + abs(x))."""
    check_float("softsign", x)
    scale = 1 + np.abs(x)
    return x / scale, lambda dy: (dy / (scale * scale),)
