"""Multiples of a vector, by all threads: a mean gradient made a sum.

What a step does with whole vectors beside its arithmetic stays small only where all threads do it:
one core moves bytes no faster while the others, which made the gradient, wait.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.nontemporal import drain, put, streams
from daskdl.kernels.runtime.passes import LEAST_UNITS, UNIT, flat
from daskdl.kernels.runtime.team import over_range
from daskdl.kernels.runtime.threads import threads

Vector = NDArray[np.float32]


def times(vector: Vector, factor: float, out: Vector) -> bool:
    """Write ``factor * vector``, numpy's bits, and return whether all of the vector is finite.

    Parameters
    ----------
    vector, out : float32 (n,), contiguous
    factor : float
    """
    wrong = np.zeros(threads(), np.bool_)
    past = True if streams(out) else None
    units = -(-vector.size // UNIT)
    over_range(_times, units, LEAST_UNITS, flat(vector), np.float32(factor), out, past, wrong)
    return not wrong.any()


@jit
def _times(vector, factor, out, past, wrong, which, begin, end):
    """Write the units ``begin`` to ``end``, and whether a number is not finite to wrong[which]."""
    source, target = vector[begin * UNIT : end * UNIT], out[begin * UNIT : end * UNIT]
    found, nothing = False, vector.dtype.type(0)
    for k in range(source.size):
        found |= source[k] - source[k] != nothing  # of what is not finite that is NaN
        put(target, k, factor * source[k], past)
    wrong[which] = found
    drain(past)
