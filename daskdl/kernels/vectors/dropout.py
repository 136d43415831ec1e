"""Dropout whose random numbers depend only on seed, counter and position.

Philox4x32-10: J. Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3 (SC 2011). No mask is
kept: backward draws the same numbers again, which costs less than reading them from memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.runtime.passes import LEAST_UNITS, UNIT, drain, flat, put, streams
from daskdl.kernels.runtime.team import over_range

Array = NDArray[Any]

_DRAWS = UNIT // 4  # a draw gives four words


def dropout(x: Array, rate: float, seed: int, counter: int) -> Array:
    """Return ``x`` with a share of about ``rate`` set to zero, the rest divided by ``1 - rate``.

    Each pair of seed and counter, modulo 2**64, gives different draws.
    """
    vector = flat(x)
    result = empty(vector.size, vector.dtype)
    scale = vector.dtype.type(1 / (1 - rate) if rate < 1 else 0)
    limit = np.uint64(round(rate * 2**32))
    keys = words(seed, counter)
    past = True if streams(result) else None

    units = -(-vector.size // UNIT)
    over_range(_dropout, units, LEAST_UNITS, vector, result, keys, limit, scale, past)
    return result.reshape(x.shape)


def words(*numbers: int) -> NDArray[np.uint32]:
    """Return the lower and the upper 32 bits of each number."""
    return np.array([n >> s & 0xFFFFFFFF for n in numbers for s in (0, 32)], np.uint32)


@jit
def philox(number, keys, result):
    """Write the words of ``result.shape[1]`` successive draws from ``number``; uint32 (4, draws).

    ``keys`` are the key's two words and the counter's upper two; ``number`` has its lower two.
    """
    bits, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    m0, m1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
    w0, w1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
    first, second, third, fourth = result[0], result[1], result[2], result[3]
    for lane in range(first.size):
        at = np.uint64(number) + np.uint64(lane)
        c0, c1, c2, c3 = at & low, at >> bits, np.uint64(keys[2]), np.uint64(keys[3])
        k0, k1 = np.uint64(keys[0]), np.uint64(keys[1])
        for _ in range(10):
            p0, p1 = m0 * c0, m1 * c2
            c0, c1, c2, c3 = (p1 >> bits) ^ c1 ^ k0, p1 & low, (p0 >> bits) ^ c3 ^ k1, p0 & low
            k0, k1 = (k0 + w0) & low, (k1 + w1) & low
        first[lane], second[lane] = np.uint32(c0), np.uint32(c1)
        third[lane], fourth[lane] = np.uint32(c2), np.uint32(c3)


@jit
def _dropout(x, y, keys, limit, scale, past, which, start, stop):
    drawn = np.empty((4, _DRAWS), np.uint32)
    line = drawn.reshape(UNIT)
    zero = x.dtype.type(0)
    for unit in range(start, stop):
        philox(unit * _DRAWS, keys, drawn)
        first = unit * UNIT
        before, after = x[first : first + UNIT], y[first : first + UNIT]
        for k in range(before.size):
            factor = zero if line[k] < limit else scale
            put(after, k, before[k] * factor, past)  # a product: NaN stays NaN
    drain(past)
