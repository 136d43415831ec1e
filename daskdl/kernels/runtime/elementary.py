"""Elementary functions for numba functions: unlike libm's, these vectorise.

In float32 their relative error is at most 1e-6 (for the normal distribution's tail, plus 6e-8 x^2
from the rounding of x^2); NaN stays NaN. In float64, which is for checks, they are libm's.
Functions that call them must not let LLVM reorder sums (``fusedjit``).
"""

from __future__ import annotations

import math

import numpy as np
from numba import types
from numba.extending import overload

__all__ = ["expm1", "exponential", "logistic", "normal_tail", "softplus", "tanh"]

# (exp(r) - 1 - r) / r^2 for |r| <= log(2) / 2.
_EXP = (0.5, 0.16666577, 0.04166685, 0.00836315, 0.00139013)
# atanh(s) / s in powers of s^2, for s <= 1/3.
_ATANH = (1.0, 0.33333157, 0.20012455, 0.13980302, 0.14089163)
# exp(a^2 / 2) (1 - Phi(a)) / t in powers of t = 1 / (1 + 0.3 a), for 0 <= a <= 14.
_TAIL = (
    0.11968663, 0.11957283, 0.11022739, 0.07842526, 0.09605875,
    -0.07924906, 0.19158375, -0.22806905, 0.11237643, -0.02061295,
)  # fmt: skip

# tanh(x) = x P(x^2) / Q(x^2) up to |x| = 9, fitted for the smallest relative error, 4e-7 in
# float32.
_TANH_P = (
    1.0,
    0.13855912,
    0.00409427218,
    3.30037967e-05,
    4.57370464e-08,
    -3.17484759e-11,
    2.57913e-14,
)
_TANH_Q = (1.0, 0.471892452, 0.0280584247, 0.000435070987, 1.66999903e-06)


def tanh(x: float) -> float:
    """Hyperbolic tangent, for use inside numba functions."""
    return math.tanh(x)


@overload(tanh, inline="always")
def _tanh(x):
    if x != types.float32:
        return lambda x: math.tanh(x)
    one, limit = np.float32(1), np.float32(9)
    p0, p1, p2, p3, p4, p5, p6 = (np.float32(p) for p in _TANH_P)
    q0, q1, q2, q3, q4 = (np.float32(q) for q in _TANH_Q)

    def implementation(x):
        z = min(max(x, -limit), limit)
        s = z * z
        p = p0 + s * (p1 + s * (p2 + s * (p3 + s * (p4 + s * (p5 + s * p6)))))
        q = q0 + s * (q1 + s * (q2 + s * (q3 + s * q4)))
        return min(max(z * p / q, -one), one)

    return implementation


def exponential(x):
    """exp(x) for x <= 0; 0 where it is below the normal numbers."""
    return math.exp(x)


@overload(exponential)
def _exponential(x):
    if x != types.float32:
        return lambda x: math.exp(x)
    low, one, per_two = (np.float32(c) for c in (-88, 1, 1 / math.log(2)))
    # x = n log(2) + r, with log(2) in two parts; n times the first is exact. Adding 1.5 * 2^23
    # rounds n to a whole number in the lowest bits.
    first, second, shift = (np.float32(c) for c in (0.693359375, -2.12194440e-4, 12582912))
    c0, c1, c2, c3, c4 = (np.float32(c) for c in _EXP)
    bias = np.int32(0x4B400000 - 127)  # the shift's bits, less the exponent's bias

    def implementation(x):
        x = max(x, low)
        shifted = x * per_two + shift
        n = shifted - shift
        r = x - n * first
        r = r - n * second
        z = r * r
        p = one + (r + z * ((c0 + r * c1) + z * ((c2 + r * c3) + z * c4)))
        exponent = np.int32(np.float32(shifted).view(np.int32) - bias)  # at least 0
        return p * np.int32(exponent << np.int32(23)).view(np.float32)

    return implementation


def logistic(x):
    """1 / (1 + exp(-x))."""
    return 1 / (1 + math.exp(-x))


@overload(logistic)
def _logistic(x):
    kind = np.float32 if x == types.float32 else np.float64
    zero, one = kind(0), kind(1)

    def implementation(x):
        e = exponential(-abs(x))
        above = one if x >= zero else e
        return above / (one + e)

    return implementation


def softplus(x):
    """log(1 + exp(x))."""
    return max(x, 0) + math.log1p(math.exp(-abs(x)))


@overload(softplus)
def _softplus(x):
    if x != types.float32:
        return lambda x: max(x, 0.0) + math.log1p(math.exp(-abs(x)))
    zero, two = np.float32(0), np.float32(2)
    a0, a1, a2, a3, a4 = (np.float32(a) for a in _ATANH)

    def implementation(x):
        e = exponential(-abs(x))
        s = e / (two + e)  # log(1 + e) = 2 atanh(s)
        z = s * s
        return max(x, zero) + two * s * (a0 + z * (a1 + z * (a2 + z * (a3 + z * a4))))

    return implementation


def expm1(x):
    """exp(x) - 1 for x <= 0."""
    return math.expm1(x)


@overload(expm1)
def _expm1(x):
    if x != types.float32:
        return lambda x: math.expm1(x)
    half, one, two = np.float32(0.5), np.float32(1), np.float32(2)

    def implementation(x):
        t = tanh(half * x)
        return two * t / (one - t)

    return implementation


def normal_tail(x):
    """Phi(-|x|), the normal distribution's tail, and exp(-x^2 / 2)."""
    return 0.5 * math.erfc(abs(x) / math.sqrt(2)), math.exp(-0.5 * x * x)


@overload(normal_tail)
def _normal_tail(x):
    if x != types.float32:
        root = math.sqrt(0.5)
        return lambda x: (0.5 * math.erfc(abs(x) * root), math.exp(-0.5 * x * x))
    half, one, limit, scale = (np.float32(c) for c in (0.5, 1, 14, 0.3))
    t0, t1, t2, t3, t4, t5, t6, t7, t8, t9 = (np.float32(t) for t in _TAIL)

    def implementation(x):
        a = min(abs(x), limit)
        e = exponential(-half * a * a)
        t = one / (one + scale * a)
        z = t * t  # even and odd powers apart: two independent sums
        even = t0 + z * (t2 + z * (t4 + z * (t6 + z * t8)))
        odd = t1 + z * (t3 + z * (t5 + z * (t7 + z * t9)))
        return e * t * (even + t * odd), e

    return implementation
