"""Largest number, sum and sum of products of a row, for kernels that loop over rows.

They take a matrix and a row's index instead of a row: a slice inside a loop counts references,
which takes longer than a row of a few numbers.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import overload

from daskdl.kernels.runtime.jit import fastjit


def row_largest(x, r):
    """Return the largest number of row r; NaN if the row has a NaN without a minus sign."""
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

    # As integers, with the bits of negative ones inverted, floats keep their order; and LLVM
    # vectorises the maximum of integers, unlike that of floats.
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

    The order of a sum depends on its length, so leave out zeros that fill rows up to a width that
    depends on the processor.
    """
    result = a.dtype.type(0)
    for c in range(count):
        result += a[r, c] * b[r, c]
    return result
