"""Activations and their gradients, one pass each: kernels for :func:`passes.one_pass`.

A function named after an activation computes ``y`` from ``x``. One whose name ends in ``_back``
computes the gradient to ``x`` from the kept array, its first argument, and the gradient to ``y``.
NaN stays NaN. Gradients are loaded for either sign: conditional loads would be masked and slow.
"""

from __future__ import annotations

import math

from daskdl.kernels.runtime import elementary
from daskdl.kernels.runtime.elementary import expm1, exponential, logistic, normal_tail
from daskdl.kernels.runtime.jit import fusedjit
from daskdl.kernels.runtime.passes import drain, put

_DENSITY = 1 / math.sqrt(2 * math.pi)
_ROOT, _CUBIC = math.sqrt(2 / math.pi), 0.044715


@fusedjit
def erf(x, y, settings, past):
    """2 / sqrt(pi) times the integral of exp(-t²) from 0 to x."""
    for k in range(x.size):
        put(y, k, x.dtype.type(math.erf(x[k])), past)
    drain(past)


@fusedjit
def clip(x, y, limits, past):
    """Limit to ``limits[0]`` and ``limits[1]``."""
    low, high = limits[0], limits[1]
    for k in range(x.size):
        put(y, k, min(max(x[k], low), high), past)
    drain(past)


@fusedjit
def clip_back(x, dy, dx, limits, past):
    """Pass the gradient strictly between the limits; from ``x`` or from ``y``."""
    low, high, zero = limits[0], limits[1], x.dtype.type(0)
    for k in range(x.size):
        g = dy[k]
        put(dx, k, zero if (x[k] <= low) | (x[k] >= high) else g, past)
    drain(past)


@fusedjit
def relu(x, y, settings, past):
    """max(x, 0)."""
    zero = x.dtype.type(0)
    for k in range(x.size):
        put(y, k, max(x[k], zero), past)
    drain(past)


@fusedjit
def relu_back(y, dy, dx, settings, past):
    """Gradient from ``y``; it is 0 at 0."""
    zero = y.dtype.type(0)
    for k in range(y.size):
        g = dy[k]
        put(dx, k, zero if y[k] <= zero else g, past)
    drain(past)


@fusedjit
def leaky_relu(x, y, settings, past):
    """``x`` where positive, ``settings[0] * x`` elsewhere."""
    slope, zero = settings[0], x.dtype.type(0)
    for k in range(x.size):
        v = x[k] if x[k] > zero else slope * x[k]
        put(y, k, v, past)
    drain(past)


@fusedjit
def leaky_relu_back(x, dy, dx, settings, past):
    """Gradient from ``x``."""
    slope, zero = settings[0], x.dtype.type(0)
    for k in range(x.size):
        d = dy[k] if x[k] > zero else slope * dy[k]
        put(dx, k, d, past)
    drain(past)


@fusedjit
def elu(x, y, settings, past):
    """``x`` where positive, ``settings[0] * (exp(x) - 1)`` elsewhere."""
    alpha, zero = settings[0], x.dtype.type(0)
    for k in range(x.size):
        below = alpha * expm1(min(x[k], zero))
        v = x[k] if x[k] > zero else below
        put(y, k, v, past)
    drain(past)


@fusedjit
def elu_back(x, dy, dx, settings, past):
    """Gradient from ``x``."""
    alpha, zero = settings[0], x.dtype.type(0)
    for k in range(x.size):
        below = alpha * exponential(min(x[k], zero)) * dy[k]
        d = dy[k] if x[k] > zero else below
        put(dx, k, d, past)
    drain(past)


@fusedjit
def gelu(x, y, settings, past):
    """X times the normal distribution function."""
    zero, one = x.dtype.type(0), x.dtype.type(1)
    for k in range(x.size):
        tail, _ = normal_tail(x[k])
        phi = one - tail if x[k] > zero else tail
        put(y, k, x[k] * phi, past)
    drain(past)


@fusedjit
def gelu_back(x, dy, dx, settings, past):
    """Gradient from ``x``."""
    zero, one, density = x.dtype.type(0), x.dtype.type(1), x.dtype.type(_DENSITY)
    for k in range(x.size):
        tail, e = normal_tail(x[k])
        phi = one - tail if x[k] > zero else tail
        put(dx, k, dy[k] * (phi + x[k] * density * e), past)
    drain(past)


@fusedjit
def gelu_tanh(x, y, settings, past):
    """X (1 + tanh(u)) / 2, u = sqrt(2 / pi) (x + 0.044715 x^3), which is x logistic(2 u)."""
    one, two, root, cubic = (
        x.dtype.type(1), x.dtype.type(2), x.dtype.type(_ROOT), x.dtype.type(_CUBIC),
    )  # fmt: skip
    for k in range(x.size):
        u = root * x[k] * (one + cubic * x[k] * x[k])
        put(y, k, x[k] * logistic(two * u), past)
    drain(past)


@fusedjit
def gelu_tanh_back(x, dy, dx, settings, past):
    """Gradient from ``x``."""
    one, two, three = x.dtype.type(1), x.dtype.type(2), x.dtype.type(3)
    root, cubic = x.dtype.type(_ROOT), x.dtype.type(_CUBIC)
    for k in range(x.size):
        square = x[k] * x[k]
        s = logistic(two * root * x[k] * (one + cubic * square))
        slope = two * root * (one + three * cubic * square)
        put(dx, k, dy[k] * s * (one + x[k] * (one - s) * slope), past)
    drain(past)


@fusedjit
def silu(x, y, settings, past):
    """X logistic(x)."""
    for k in range(x.size):
        put(y, k, x[k] * logistic(x[k]), past)
    drain(past)


@fusedjit
def silu_back(x, dy, dx, settings, past):
    """Gradient from ``x``."""
    one = x.dtype.type(1)
    for k in range(x.size):
        s = logistic(x[k])
        put(dx, k, dy[k] * s * (one + x[k] * (one - s)), past)
    drain(past)


@fusedjit
def sigmoid(x, y, settings, past):
    """1 / (1 + exp(-x))."""
    for k in range(x.size):
        put(y, k, logistic(x[k]), past)
    drain(past)


@fusedjit
def sigmoid_back(y, dy, dx, settings, past):
    """Gradient from ``y``."""
    one = y.dtype.type(1)
    for k in range(y.size):
        put(dx, k, dy[k] * y[k] * (one - y[k]), past)
    drain(past)


@fusedjit
def tanh(x, y, settings, past):
    """Hyperbolic tangent."""
    for k in range(x.size):
        put(y, k, elementary.tanh(x[k]), past)
    drain(past)


@fusedjit
def tanh_back(y, dy, dx, settings, past):
    """Gradient from ``y``."""
    one = y.dtype.type(1)
    for k in range(y.size):
        put(dx, k, dy[k] * (one - y[k] * y[k]), past)
    drain(past)


@fusedjit
def softplus(x, y, settings, past):
    """log(1 + exp(x))."""
    for k in range(x.size):
        put(y, k, elementary.softplus(x[k]), past)
    drain(past)


@fusedjit
def softplus_back(x, dy, dx, settings, past):
    """Gradient from ``x``."""
    for k in range(x.size):
        put(dx, k, dy[k] * logistic(x[k]), past)
    drain(past)


@fusedjit
def hard_sigmoid(x, y, settings, past):
    """X / 6 + 1 / 2, limited to 0 and 1."""
    zero, three, six, sixth = (
        x.dtype.type(0), x.dtype.type(3), x.dtype.type(6), x.dtype.type(1 / 6),
    )  # fmt: skip
    for k in range(x.size):
        put(y, k, min(max(x[k] + three, zero), six) * sixth, past)
    drain(past)


@fusedjit
def hard_sigmoid_back(x, dy, dx, settings, past):
    """Gradient from ``x``."""
    zero, three, sixth = x.dtype.type(0), x.dtype.type(3), x.dtype.type(1 / 6)
    for k in range(x.size):
        g = sixth * dy[k]
        put(dx, k, zero if (x[k] <= -three) | (x[k] >= three) else g, past)
    drain(past)


@fusedjit
def hard_swish(x, y, settings, past):
    """X hard_sigmoid(x)."""
    zero, three, six, sixth = (
        x.dtype.type(0), x.dtype.type(3), x.dtype.type(6), x.dtype.type(1 / 6),
    )  # fmt: skip
    for k in range(x.size):
        put(y, k, x[k] * (min(max(x[k] + three, zero), six) * sixth), past)
    drain(past)


@fusedjit
def hard_swish_back(x, dy, dx, settings, past):
    """Gradient from ``x``."""
    zero, half, one, three, third = (
        x.dtype.type(0), x.dtype.type(0.5), x.dtype.type(1), x.dtype.type(3), x.dtype.type(1 / 3),
    )  # fmt: skip
    for k in range(x.size):
        slope = x[k] * third + half
        slope = zero if x[k] <= -three else (one if x[k] >= three else slope)
        put(dx, k, dy[k] * slope, past)
    drain(past)
