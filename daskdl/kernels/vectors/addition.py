"""The sum of two arrays, by all threads into memory that is kept: gradients that meet."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime.jit import fusedjit
from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.runtime.nontemporal import drain, put
from daskdl.kernels.runtime.passes import flat, one_pass
from daskdl.kernels.runtime.team import over_rows

Array = NDArray[Any]

#: Numbers from which numpy's sum takes longer.
LEAST = 1 << 16


def added(a: Array, b: Array) -> Array:
    """Return ``a + b``, the bits of numpy's."""
    if a.shape != b.shape or a.dtype != b.dtype or a.size < LEAST or a.dtype.kind != "f":
        return a + b
    if not (a.flags.c_contiguous and b.flags.c_contiguous):
        return np.add(a, b, out=empty(a.shape, a.dtype))
    (total,) = one_pass(plus, a, b)
    return total


def add_into(total: Array, more: Array) -> None:
    """Do ``total += more``, to the bits of numpy's."""
    plain = total.flags.c_contiguous and more.flags.c_contiguous and total.dtype == more.dtype
    if total.size >= LEAST and plain and total.dtype.kind == "f" and total.shape == more.shape:
        over_rows(_add_into, (total.reshape(-1), flat(more)), LEAST)
    else:
        total += more


@fusedjit
def _add_into(total, more):
    for k in range(total.size):
        total[k] += more[k]


@fusedjit
def plus(a, b, total, settings, past):
    """Write a + b to the total."""
    for k in range(a.size):
        put(total, k, a[k] + b[k], past)
    drain(past)
