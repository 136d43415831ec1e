"""Local response normalisation across channels, a few rows at a time.

A. Krizhevsky et al., ImageNet Classification with Deep Convolutional Neural Networks, NIPS 2012.
Forward reads one array and writes one; backward reads two and writes one. It computes the sums over
neighbouring channels again, in buffers that stay in the L1 cache.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime import grain
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.runtime.passes import flat
from daskdl.kernels.runtime.team import over_rows

Array = NDArray[Any]

#: Approximate numbers of a buffer.
BUFFER = 1024


class Response(NamedTuple):
    """``y = x * (k + alpha / size * sum of x**2 over a window) ** -beta``.

    The window of channel c goes from ``c - size // 2`` and has ``size`` channels.
    """

    size: int
    alpha: float
    beta: float
    k: float


def forward(x: Array, response: Response) -> Array:
    """Return the normalised rows of x (rows, C)."""
    source, new = flat(x).reshape(x.shape), empty(x.shape, x.dtype)
    settings = _settings(response, x.dtype)
    least = grain.least(grain.EXPONENTIAL, x.shape[1])
    over_rows(_forward, (source, new), least, response.size, settings)
    return new


def backward(dy: Array, x: Array, response: Response) -> Array:
    """Return the gradient to x (rows, C)."""
    source, gradient = flat(x).reshape(x.shape), flat(dy, x.dtype).reshape(x.shape)
    new, settings = empty(x.shape, x.dtype), _settings(response, x.dtype)
    least = grain.least(grain.EXPONENTIAL, x.shape[1])
    over_rows(_backward, (gradient, source, new), least, response.size, settings)
    return new


def _settings(response: Response, dtype: Any) -> Array:
    """Return k, the factor of the sums of squares and beta."""
    return np.array([response.k, response.alpha / response.size, response.beta], dtype)


# A buffer holds rows of channels with size - 1 zeros between them, for windows over their edges.
# Windows are summed over the whole buffer, so that loops are long even with few channels; sums
# between two rows are not used. With fastjit, even of a caller, LLVM would compute roots from an
# estimate and a Newton step, which turns infinity into NaN; so all of these are exact.


@jit
def _windows(squares, size, sums):
    """Write into ``sums[c]`` the sum of ``squares[c : c + size]``."""
    n = squares.size - size + 1
    if size == 5:
        for c in range(n):
            p = np.uintp(c)
            sums[p] = (
                (squares[p] + squares[p + np.uintp(1)])
                + (squares[p + np.uintp(2)] + squares[p + np.uintp(3)])
            ) + squares[p + np.uintp(4)]
        return
    for c in range(n):
        sums[c] = squares[c]
    for t in range(1, size):
        for c in range(n):
            sums[c] += squares[np.uintp(c + t)]


@jit
def _power(sums, settings, powers):
    """Write ``(k + factor * sums) ** -beta``, and k + factor * sums in place of the sums."""
    k, factor, beta = settings[0], settings[1], settings[2]
    one = sums.dtype.type(1)
    if beta == sums.dtype.type(0.75):  # AlexNet's and Inception's; roots vectorise, powers do not
        for c in range(sums.size):
            p = np.uintp(c)
            s = k + factor * sums[p]
            root = np.sqrt(s)
            sums[p] = s
            powers[p] = one / (root * np.sqrt(root))
        return
    for c in range(sums.size):
        s = k + factor * sums[c]
        sums[c] = s
        powers[c] = s**-beta


@jit
def _forward(x, new, size, settings):
    rows, channels = x.shape
    pitch = channels + size - 1
    at_once = max(1, BUFFER // pitch)
    squares = np.zeros(at_once * pitch + size - 1, x.dtype)
    sums, powers = np.zeros(at_once * pitch, x.dtype), np.zeros(at_once * pitch, x.dtype)
    flat_x, flat_new = x.reshape(x.size), new.reshape(new.size)
    for first in range(0, rows, at_once):
        count = min(at_once, rows - first)
        for r in range(count):
            base, to = (first + r) * channels, r * pitch + size // 2
            for c in range(channels):
                v = flat_x[np.uintp(base + c)]
                squares[np.uintp(to + c)] = v * v
        _windows(squares, size, sums)
        _power(sums, settings, powers)
        for r in range(count):
            base, at = (first + r) * channels, r * pitch
            for c in range(channels):
                flat_new[np.uintp(base + c)] = flat_x[np.uintp(base + c)] * powers[np.uintp(at + c)]


@jit
def _backward(dy, x, new, size, settings):
    rows, channels = x.shape
    pitch, after = channels + size - 1, (size - 1) // 2
    at_once = max(1, BUFFER // pitch)
    squares, terms = np.zeros((2, at_once * pitch + size - 1), x.dtype)
    sums, powers = np.zeros((2, at_once * pitch), x.dtype)
    flat_x, flat_dy, flat_new = x.reshape(x.size), dy.reshape(dy.size), new.reshape(new.size)
    factor = 2 * settings[1] * settings[2]
    for first in range(0, rows, at_once):
        count = min(at_once, rows - first)
        for r in range(count):
            base, to = (first + r) * channels, r * pitch + size // 2
            for c in range(channels):
                v = flat_x[np.uintp(base + c)]
                squares[np.uintp(to + c)] = v * v
        _windows(squares, size, sums)
        _power(sums, settings, powers)
        # Channel c is in the windows of c - after to c + size // 2.
        for r in range(count):
            base, at, to = (first + r) * channels, r * pitch, r * pitch + after
            for c in range(channels):
                p, q = np.uintp(base + c), np.uintp(at + c)
                terms[np.uintp(to + c)] = flat_dy[p] * flat_x[p] * powers[q] / sums[q]
        _windows(terms, size, sums)
        for r in range(count):
            base, at = (first + r) * channels, r * pitch
            for c in range(channels):
                p, q = np.uintp(base + c), np.uintp(at + c)
                flat_new[p] = flat_dy[p] * powers[q] - factor * flat_x[p] * sums[q]
