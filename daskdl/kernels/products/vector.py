"""Products of a matrix and a vector: one pass over the matrix, in the same order everywhere."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime.jit import fastjit
from daskdl.kernels.runtime.passes import flat
from daskdl.kernels.runtime.team import over_range
from daskdl.kernels.runtime.threads import least_of

Array = NDArray[np.float32]


def product(matrix: Array, vector: Array) -> Array:
    """Return ``matrix @ vector``; matrix (M, K), with contiguous rows or columns; vector (K,)."""
    result = np.empty(len(matrix), np.float32)
    turned = not matrix.flags.c_contiguous
    rows = flat(matrix.T if turned else matrix).reshape(matrix.shape[:: -1 if turned else 1])
    kernel = _columns if turned else _rows
    over_range(kernel, len(result), least_of(2.0 * len(vector)), rows, flat(vector), result)
    return result


@fastjit
def _rows(matrix, vector, result, which, start, stop):
    for i in range(start, stop):
        row, total = matrix[i], matrix.dtype.type(0)
        for k in range(vector.size):
            total += row[k] * vector[k]
        result[i] = total


@fastjit
def _columns(matrix, vector, result, which, start, stop):
    result[start:stop] = 0
    for k in range(vector.size):
        row, factor = matrix[k], vector[k]
        for i in range(start, stop):
            result[i] += row[i] * factor
