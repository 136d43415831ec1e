"""Arithmetic on whole vectors: sums, multiples, dot products, bounds, biases, copies, zeros.

All threads share a pass, since one core moves bytes no faster while the others wait. Large results
bypass the caches. Results have numpy's bits, with any number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime import grain
from daskdl.kernels.runtime.jit import fastjit, fusedjit, jit
from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.runtime.passes import LEAST_UNITS, UNIT, drain, flat, one_pass, put, streams
from daskdl.kernels.runtime.team import over_range, over_rows
from daskdl.kernels.runtime.threads import threads
from daskdl.kernels.vectors.reduce import sum_over

Array = NDArray[Any]

#: Dtypes that kernels are compiled for; numpy computes others.
FLOATS = np.float32, np.float64

#: Numbers of a block of a dot product; each block is summed alone, and the sums are added in order.
BLOCK = 1 << 15


def added(a: Array, b: Array) -> Array:
    """Return ``a + b``."""
    if a.shape != b.shape or a.dtype != b.dtype or a.size < grain.SUM or a.dtype.kind != "f":
        return a + b
    if not (a.flags.c_contiguous and b.flags.c_contiguous):
        return np.add(a, b, out=empty(a.shape, a.dtype))
    (total,) = one_pass(plus, a, b)
    return total


def add_into(total: Array, more: Array) -> None:
    """Do ``total += more``."""
    dense = total.flags.c_contiguous and more.flags.c_contiguous and total.dtype == more.dtype
    if total.size >= grain.SUM and dense and total.dtype.kind == "f" and total.shape == more.shape:
        over_rows(_add_into, (total.reshape(-1), flat(more)), grain.SUM)
    else:
        total += more


def add_bias(y: Array, bias: Array) -> None:
    """Do ``y += bias``; y (..., C) and bias (C,)."""
    if y.dtype not in FLOATS or not y.flags.c_contiguous:
        y += bias
    elif y.size:
        least = grain.least(grain.STREAM, y.shape[-1])
        over_rows(_add_bias, (y.reshape(-1, y.shape[-1]),), least, flat(bias, y.dtype))


def bias_gradient(dy: Array) -> Array:
    """Return the sums of dy (..., C) over all axes except the last."""
    axes = tuple(range(dy.ndim - 1))
    return sum_over(dy, axes).astype(dy.dtype) if dy.dtype in FLOATS else dy.sum(axes)


def times(vector: NDArray[np.float32], factor: float, out: NDArray[np.float32]) -> bool:
    """Write ``factor * vector`` to ``out``; return whether the whole vector is finite.

    Both are contiguous; they are the same memory, or do not overlap.
    """
    wrong = np.zeros(threads(), np.bool_)
    past = True if streams(out) else None
    units = -(-vector.size // UNIT)
    # With two names for one array, the compiler could not know that they advance in step.
    new = None if vector.ctypes.data == out.ctypes.data else out
    over_range(_times, units, LEAST_UNITS, flat(vector), np.float32(factor), new, past, wrong)
    return not wrong.any()


def dot(a: Array, b: Array) -> float:
    """Return the sum, in float64, of the products of two float32 or float64 vectors (n,)."""
    a, b = flat(a), flat(b, a.dtype)
    sums = np.zeros(-(-a.size // BLOCK))
    over_range(_dots, len(sums), 1, a, b, sums)
    return float(sums.sum())


def clip(x: Array, bound: float, scale: float = 1.0) -> Array:
    """Return ``scale * x``, limited to -bound and bound; NaN stays NaN."""
    (result,) = one_pass(_clip, x, settings=np.array([bound, scale], x.dtype))
    return result


def copied(vector: Array) -> Array:
    """Return a copy of a vector, or of an array (), in memory that the process reuses."""
    new: Array = empty(vector.shape, vector.dtype)
    copy_to(new, vector)
    return new


def copy_to(target: Array, source: Array) -> None:
    """Do ``target[...] = source`` for arrays of one shape; nothing if they are the same memory.

    They must not overlap otherwise.
    """
    dense = target.flags.c_contiguous and source.flags.c_contiguous
    alike = target.shape == source.shape and target.dtype == source.dtype
    if not (dense and alike and streams(target)):
        np.copyto(target, source, casting="same_kind")
    elif target.ctypes.data != source.ctypes.data:
        over_rows(_copy, (flat(source), target.reshape(-1)), LEAST_UNITS, True, unit=UNIT)


def clear(vector: NDArray[np.floating[Any]]) -> None:
    """Set all numbers of a contiguous vector to zero.

    If it is larger than the caches, it bypasses them: ordinary stores would first read it.
    """
    if streams(vector):
        over_rows(put_zeros, (vector,), LEAST_UNITS, True, unit=UNIT)
    else:
        vector[:] = 0


@fusedjit
def plus(a, b, total, settings, past):
    """Write a + b to the total."""
    for k in range(a.size):
        put(total, k, a[k] + b[k], past)
    drain(past)


@fusedjit
def _add_into(total, more):
    for k in range(total.size):
        total[k] += more[k]


@jit
def _add_bias(y, bias):
    vector = y.reshape(-1)
    for start in range(0, vector.size, bias.size):
        for c in range(bias.size):
            vector[np.uintp(start + c)] += bias[c]


@jit
def _times(vector, factor, new, past, wrong, which, begin, end):
    """Write units ``begin`` to ``end`` to ``new``, or to the vector itself if ``new`` is None.

    Set ``wrong[which]`` if a number is not finite.
    """
    stop = min(end * UNIT, vector.size)
    source = vector[begin * UNIT : stop]
    target = source if new is None else new[begin * UNIT : stop]
    not_finite, nothing = False, vector.dtype.type(0)
    for k in range(source.size):
        not_finite |= source[k] - source[k] != nothing  # NaN if a number is not finite
        put(target, k, factor * source[k], past)
    wrong[which] = not_finite
    drain(past)


@fastjit
def _dots(a, b, sums, which, start, stop):
    for block in range(start, stop):
        total = 0.0
        for k in range(block * BLOCK, min((block + 1) * BLOCK, a.size)):
            total += np.float64(a[k]) * np.float64(b[k])
        sums[block] = total


@jit
def _clip(x, new, settings, past):
    bound, scale = settings[0], settings[1]
    for k in range(x.size):
        value = scale * x[k]
        value = bound if value > bound else value
        put(new, k, -bound if value < -bound else value, past)
    drain(past)


@jit
def _copy(source, target, past):
    for k in range(source.size):
        put(target, k, source[k], past)
    drain(past)


@fastjit
def put_zeros(vector, past):
    """Write zeros."""
    nothing = vector.dtype.type(0)
    for k in range(vector.size):
        put(vector, k, nothing, past)
    drain(past)
