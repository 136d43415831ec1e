"""Zeros in memory that is there: large vectors are written past the caches, by all threads."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime.jit import fastjit
from daskdl.kernels.runtime.nontemporal import drain, put, streams
from daskdl.kernels.runtime.passes import LEAST_UNITS, UNIT
from daskdl.kernels.runtime.team import over_rows


def clear(vector: NDArray[np.floating[Any]]) -> None:
    """Set all numbers of a contiguous vector to zero.

    Ordinary stores would read a vector larger than the caches before they write it.
    """
    if streams(vector):
        over_rows(put_zeros, (vector,), LEAST_UNITS, True, unit=UNIT)
    else:
        vector[:] = 0


@fastjit
def put_zeros(vector, past):
    """Write zeros."""
    nothing = vector.dtype.type(0)
    for k in range(vector.size):
        put(vector, k, nothing, past)
    drain(past)
