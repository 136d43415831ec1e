"""Batch normalisation with another array added to its result, one pass over memory for all.

The end of a residual block (K. He et al., arXiv 1512.03385): ``max((x - mean) * scale + bias +
residual, 0)`` reads both arrays and writes one, where norm, sum and ReLU one after the other would
move more than twice as much.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.batchnorm import LANES, affine_lanes, in_rows, result_for
from daskdl.kernels.jit import fastjit
from daskdl.kernels.passes import flat
from daskdl.kernels.stores import drain, put

Array = NDArray[Any]


def normalise_plus(
    x: Array, residual: Array, mean: Array, scale: Array, bias: Array, floor: float
) -> Array:
    """Return ``(x - mean) * scale + bias + residual``, or ``floor`` where that is more.

    Parameters
    ----------
    x, residual : arrays (..., C)
    mean, scale, bias : float64 arrays (C,)
    floor : float
        0 for a ReLU; NaN for none.
    """
    source, beside, (new, past) = flat(x), flat(residual, x.dtype), result_for(x)
    lanes = affine_lanes(x.dtype, LANES, mean, scale, bias)
    in_rows(put_sum, x, (source, beside, new), lanes, x.dtype.type(floor), past)
    return new.reshape(x.shape)


@fastjit
def put_sum(x, residual, new, lanes, floor, past):  # type: ignore[no-untyped-def]
    """Write (x - mean) * scale + bias of the lanes plus the residual, or the floor, to ``new``."""
    mean, scale, bias = lanes[0], lanes[1], lanes[2]
    width = mean.size
    for first in range(0, x.size, width):
        for c in range(min(width, x.size - first)):
            p = np.uintp(first + c)
            v = (x[p] - mean[c]) * scale[c] + bias[c] + residual[p]
            put(new, first + c, floor if v < floor else v, past)  # NaN is below nothing
    drain(past)
