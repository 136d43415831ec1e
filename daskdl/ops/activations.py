"""Activations, element by element; each keeps its result (or its sign) for the way back."""

from __future__ import annotations

import numpy as np

from daskdl.tensor import Array, op


@op
def relu(x: Array):  # type: ignore[no-untyped-def]
    """max(x, 0); the gradient at 0 is 0."""
    y = np.maximum(x, 0)
    return y, lambda dy: (dy * (y > 0),)


@op
def leaky_relu(x: Array, *, slope: float = 0.2):  # type: ignore[no-untyped-def]
    """X where positive, ``slope * x`` elsewhere (A. Maas et al., 2013)."""
    slope = x.dtype.type(slope)
    factor = np.where(x > 0, x.dtype.type(1), slope)
    return x * factor, lambda dy: (dy * factor,)


@op
def sigmoid(x: Array):  # type: ignore[no-untyped-def]
    """1 / (1 + exp(-x)), without overflow."""
    half = x.dtype.type(0.5)
    y = half + half * np.tanh(half * x)
    return y, lambda dy: (dy * y * (1 - y),)


@op
def tanh(x: Array):  # type: ignore[no-untyped-def]
    """Hyperbolic tangent."""
    y = np.tanh(x)
    return y, lambda dy: (dy * (1 - y * y),)


@op
def softplus(x: Array):  # type: ignore[no-untyped-def]
    """log(1 + exp(x)), without overflow."""
    half = x.dtype.type(0.5)
    return np.logaddexp(x, x.dtype.type(0)), lambda dy: (dy * (half + half * np.tanh(half * x)),)
