"""The dot product of two vectors, in float64, with the same bits whatever the threads."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime.jit import fastjit
from daskdl.kernels.runtime.passes import flat
from daskdl.kernels.runtime.team import over_range

Array = NDArray[Any]

#: Elements whose products are summed by themselves; these sums are added in their order.
BLOCK = 1 << 15


def dot(a: Array, b: Array) -> float:
    """Return the sum of the products of two float32 or float64 vectors (n,)."""
    a, b = flat(a), flat(b, a.dtype)
    sums = np.zeros(-(-a.size // BLOCK))
    over_range(_dots, len(sums), 1, a, b, sums)
    return float(sums.sum())


@fastjit
def _dots(a, b, sums, which, start, stop):
    for block in range(start, stop):
        total = 0.0
        for k in range(block * BLOCK, min((block + 1) * BLOCK, a.size)):
            total += np.float64(a[k]) * np.float64(b[k])
        sums[block] = total
