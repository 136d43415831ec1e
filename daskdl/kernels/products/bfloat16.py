"""bfloat16: float32 without its lower 16 bits; numpy has no such dtype, so its bits are uint16."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime.jit import jit


def to_bfloat16(x: NDArray[np.float32]) -> NDArray[np.uint16]:
    """Round to the nearest bfloat16, ties to even; NaN stays NaN."""
    bits = np.ascontiguousarray(x).view(np.uint32)
    result = np.empty(x.shape, np.uint16)
    _round(bits.reshape(-1), result.reshape(-1))
    return result


def from_bfloat16(bits: NDArray[np.uint16]) -> NDArray[np.float32]:
    """Return the numbers of bfloat16 bits; exact."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


@jit
def _round(bits, result):
    for k in range(bits.size):
        u = bits[k]
        high = u >> np.uint32(16)
        if (u & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000):
            result[k] = np.uint16(high | np.uint32(0x40))  # quiet, so that no bit of NaN gets lost
        else:
            result[k] = np.uint16((u + np.uint32(0x7FFF) + (high & np.uint32(1))) >> np.uint32(16))
