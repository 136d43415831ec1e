"""Bytes for float32 numbers: a scale and a zero, and the passes from one to the other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.runtime.team import over_range
from daskdl.kernels.runtime.threads import least_of

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]

#: The highest byte.
HIGHEST = 255
#: The largest magnitude of a weight: -128 has no counterpart.
LARGEST = 127


class Scale(NamedTuple):
    """Scale and zero of bytes, which stand for ``(byte - zero) * scale``: float32, 0 to 255."""

    scale: float
    zero: int

    @property
    def inverse(self) -> float:
        """Return by what numbers are multiplied, float32."""
        return float(np.float32(1) / np.float32(self.scale))


def scale_of(low: float, high: float) -> Scale:
    """Return the scale for numbers from low to high, 0 among them, which has a byte of its own."""
    low, high = min(low, 0.0), max(high, 0.0)
    scale = np.float32((high - low) / HIGHEST)
    if not scale > 0:
        return Scale(1.0, 0)
    return Scale(float(scale), int(np.clip(np.rint(-low / scale), 0, HIGHEST)))


def to_bytes(x: Floats, scale: float, zero: int) -> Bytes:
    """Return ``round(x / scale) + zero`` within 0 and 255, to the nearest, ties to even.

    x : float32, C-contiguous. What is no number becomes 0.
    """
    y = empty(x.shape, np.uint8)
    inverse = Scale(scale, zero).inverse
    limits = np.array([inverse, -zero, HIGHEST - zero, 12582912.0], np.float32)
    over_range(_to_bytes, x.size, least_of(4), x.reshape(-1), limits, zero, y.reshape(-1))
    return y


def to_floats(x: Bytes, scale: float, zero: int) -> Floats:
    """Return ``(x - zero) * scale``, float32."""
    y = empty(x.shape, np.float32)
    both = np.array([zero, scale], np.float32)
    over_range(_to_floats, x.size, least_of(4), x.reshape(-1), both, y.reshape(-1))
    return y


@jit
def _to_bytes(x, limits, zero, y, which, start, stop):
    inverse, low, high, rounding = limits[0], limits[1], limits[2], limits[3]
    source, target = x[start:stop], y[start:stop]
    more = np.int32(zero)
    for i in range(source.size):
        value = source[i] * inverse
        value = value if value > low else low
        value = value if value < high else high
        # The whole number next to it is in the lower bits of the sum.
        target[i] = np.uint8(np.int32((value + rounding) - rounding) + more)


@jit
def _to_floats(x, both, y, which, start, stop):
    zero, scale = both[0], both[1]
    source, target = x[start:stop], y[start:stop]
    for i in range(source.size):
        target[i] = (np.float32(source[i]) - zero) * scale
