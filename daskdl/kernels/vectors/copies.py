"""Copies of large vectors, by all threads and past the caches."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.runtime.nontemporal import drain, put, streams
from daskdl.kernels.runtime.passes import LEAST_UNITS, UNIT, flat
from daskdl.kernels.runtime.team import over_rows

Vector = NDArray[Any]


def copied(vector: Vector) -> Vector:
    """Return a copy of a vector, or of a single number's array, in memory that is kept."""
    new: Vector = empty(vector.shape, vector.dtype)
    copy_to(new, vector)
    return new


def copy_to(target: Vector, source: Vector) -> None:
    """Do ``target[...] = source`` with arrays of one shape; nothing where both are the same.

    They must not overlap otherwise.
    """
    plain = target.flags.c_contiguous and source.flags.c_contiguous
    alike = target.shape == source.shape and target.dtype == source.dtype
    if not (plain and alike and streams(target)):
        np.copyto(target, source, casting="same_kind")
    elif target.ctypes.data != source.ctypes.data:
        over_rows(_copy, (flat(source), target.reshape(-1)), LEAST_UNITS, True, unit=UNIT)


@jit
def _copy(source, target, past):
    for k in range(source.size):
        put(target, k, source[k], past)
    drain(past)
