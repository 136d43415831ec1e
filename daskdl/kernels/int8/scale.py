"""Bytes for float32 numbers: a scale and a zero, and the conversions."""

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
#: The byte that stands for 0 if each row has its own scale.
MIDDLE = 128


class Scale(NamedTuple):
    """Scale and zero of bytes, which stand for ``(byte - zero) * scale``: float32, 0 to 255."""

    scale: float
    zero: int

    @property
    def inverse(self) -> float:
        """Factor from numbers to bytes, 1 / scale in float32."""
        return float(np.float32(1) / np.float32(self.scale))


def scale_of(low: float, high: float) -> Scale:
    """Return the scale for numbers from low to high, extended to 0; a byte stands for exactly 0."""
    low, high = min(low, 0.0), max(high, 0.0)
    scale = np.float32((high - low) / HIGHEST)
    if not scale > 0:
        return Scale(1.0, 0)
    return Scale(float(scale), int(np.clip(np.rint(-low / scale), 0, HIGHEST)))


def to_bytes(x: Floats, scale: float, zero: int) -> Bytes:
    """Return ``round(x / scale) + zero`` within 0 and 255, to the nearest, ties to even.

    ``x`` is float32 and C-contiguous. NaN becomes 0.
    """
    y = empty(x.shape, np.uint8)
    limits = np.array(limits_of(-np.inf, np.inf, Scale(scale, zero)), np.float32)
    over_range(_to_bytes, x.size, least_of(4), x.reshape(-1), limits, y.reshape(-1))
    return y


def to_floats(x: Bytes, scale: float, zero: int) -> Floats:
    """Return ``(x - zero) * scale``, float32."""
    y = empty(x.shape, np.float32)
    both = np.array([zero, scale], np.float32)
    over_range(_to_floats, x.size, least_of(4), x.reshape(-1), both, y.reshape(-1))
    return y


def limits_of(low: float, high: float, into: Scale) -> tuple[float, float, float, float, float]:
    """Return the factor from numbers to bytes, and more arguments of :func:`byte_of`."""
    inverse, zero = into.inverse, into.zero
    least, most = (float(np.float32(limit) * inverse) for limit in (low, high))
    return inverse, max(-float(zero), least), min(float(HIGHEST - zero), most), 12582912.0, zero


def summed(
    x: Bytes, of_x: Scale, z: Bytes, of_z: Scale, low: float, high: float, into: Scale | None
) -> Floats | Bytes:
    """Return the sums of two arrays of bytes, within limits, as float32 or as bytes of ``into``."""
    y = empty(x.shape, np.float32 if into is None else np.uint8)
    limits = (1.0, low, high) if into is None else limits_of(low, high, into)
    numbers = np.array([*of_x, *of_z, *limits], np.float32)
    work = _sums if into is None else _sums_to_bytes
    parts = x.reshape(-1), z.reshape(-1), numbers, y.reshape(-1)
    over_range(work, x.size, least_of(6), *parts)
    return y


def rows_to_bytes(x: Floats) -> tuple[Bytes, Floats]:
    """Return rows as bytes around :data:`MIDDLE`, and each row's scale, from its largest number.

    ``x`` is float32 (..., K), C-contiguous. Scales are float32 (...).
    """
    y, scales = empty(x.shape, np.uint8), empty(x.shape[:-1], np.float32)
    rows = x.reshape(-1, x.shape[-1]), y.reshape(-1, x.shape[-1]), scales.reshape(-1)
    over_range(_rows_to_bytes, len(rows[0]), least_of(6 * x.shape[-1]), *rows)
    return y, scales


def scaled_rows(y: Floats, scales: Floats, bias: Floats | None) -> Floats:
    """Return y (..., n) times the scale of each row, plus a bias (n,)."""
    shift = np.zeros(y.shape[-1], np.float32) if bias is None else bias
    z = empty(y.shape, np.float32)
    rows = y.reshape(-1, y.shape[-1]), scales.reshape(-1), shift, z.reshape(-1, y.shape[-1])
    over_range(_scaled_rows, len(rows[0]), least_of(2 * y.shape[-1]), *rows)
    return z


@jit
def byte_of(value, low, high, rounding, zero):
    """Return a multiple of a scale within limits, rounded to the nearest integer, plus the zero.

    All are float32.
    """
    value = value if value > low else low
    value = value if value < high else high
    # The sum with ``rounding`` has no fraction.
    return np.uint8(np.int32(((value + rounding) - rounding) + zero))


@jit
def _rows_to_bytes(x, y, scales, which, start, stop):
    most, middle, rounding = np.float32(LARGEST), np.float32(MIDDLE), np.float32(12582912.0)
    for row in range(start, stop):
        source, target, largest = x[row], y[row], np.float32(0)
        for i in range(source.size):
            size = abs(source[i])
            largest = size if size > largest else largest
        scales[row] = largest / most if largest > 0 else np.float32(1)
        inverse = np.float32(1) / scales[row]
        for i in range(source.size):
            target[i] = byte_of(source[i] * inverse, -most, most, rounding, middle)


@jit
def _scaled_rows(y, scales, bias, z, which, start, stop):
    for row in range(start, stop):
        source, target, scale = y[row], z[row], scales[row]
        for i in range(source.size):
            target[i] = source[i] * scale + bias[i]


@jit
def _sum(x, z, numbers):
    """Return the sum of the numbers of two bytes, times a factor."""
    more = (np.float32(z) - numbers[3]) * numbers[2]
    return ((np.float32(x) - numbers[1]) * numbers[0] + more) * numbers[4]


@jit
def _sums(x, z, numbers, y, which, start, stop):
    one, other, target = x[start:stop], z[start:stop], y[start:stop]
    low, high = numbers[5], numbers[6]
    for i in range(target.size):
        value = _sum(one[i], other[i], numbers)
        value = value if value > low else low
        target[i] = value if value < high else high


@jit
def _sums_to_bytes(x, z, numbers, y, which, start, stop):
    one, other, target = x[start:stop], z[start:stop], y[start:stop]
    low, high, rounding, zero = numbers[5], numbers[6], numbers[7], numbers[8]
    for i in range(target.size):
        target[i] = byte_of(_sum(one[i], other[i], numbers), low, high, rounding, zero)


@jit
def _to_bytes(x, limits, y, which, start, stop):
    inverse, low, high, rounding, zero = limits[0], limits[1], limits[2], limits[3], limits[4]
    source, target = x[start:stop], y[start:stop]
    for i in range(source.size):
        target[i] = byte_of(source[i] * inverse, low, high, rounding, zero)


@jit
def _to_floats(x, both, y, which, start, stop):
    zero, scale = both[0], both[1]
    source, target = x[start:stop], y[start:stop]
    for i in range(source.size):
        target[i] = (np.float32(source[i]) - zero) * scale
