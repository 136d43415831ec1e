"""Largest number, sum and sum of products of a row, for kernels that go over rows.

They take matrices and the number of a row and not rows: a slice inside a loop counts references,
which takes longer than a row of a few numbers.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import overload

from daskdl.kernels.runtime.jit import fastjit


def row_largest(x, r):
    """Return the largest number of row r, NaN if there is one that is not negative."""
    return max(x[r])


@overload(row_largest)
def _largest_of_floats(x, r):
    if x.dtype != types.float32:

        def plain(x, r):
            top = x[r, 0]
            for c in range(x.shape[1]):
                top = x[r, c] if x[r, c] > top else top
            return top

        return plain
    lowest, rest, sign = np.int32(-(2**31)), np.int32(0x7FFFFFFF), np.int32(31)

    # As integers, with the digits of negative ones turned, floats keep their order; and unlike
    # that of floats, their largest is found in vectors.
    def implementation(x, r):
        top = lowest
        for c in range(x.shape[1]):
            bits = np.float32(x[r, c]).view(np.int32)
            key = np.int32(bits ^ ((bits >> sign) & rest))
            top = max(top, key)
        return np.int32(top ^ ((top >> sign) & rest)).view(np.float32)

    return implementation


@fastjit
def row_sum(x, r):
    """Return the sum of row r."""
    result = x.dtype.type(0)
    for c in range(x.shape[1]):
        result += x[r, c]
    return result


@fastjit
def row_dot(a, b, r, count):
    """Return the sum of products of the first ``count`` numbers of two arrays' rows r.

    The order of a sum depends on its length: rows that are filled with zeros to a width of the
    processor's are to be summed without these.
    """
    result = a.dtype.type(0)
    for c in range(count):
        result += a[r, c] * b[r, c]
    return result
