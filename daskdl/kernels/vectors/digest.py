"""A digest of an array's bytes, at the speed of memory, to detect changes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime.jit import jit

#: Parallel sums, which a processor adds at a time.
LANES = 16
#: Words of a lane that are summed in registers before sums in memory change.
TOGETHER = 8


def digest(array: NDArray[Any]) -> tuple[object, ...]:
    """Return a digest that differs if any number of an array changes, or any two change places.

    It consists of Fletcher's sums of 64 bits: a sum of words and a sum of these sums, for each of
    `LANES`. It does not protect against deliberate forgery.

    Parameters
    ----------
    array : ndarray
        Array of any dtype.

    Examples
    --------
    >>> weights = np.arange(100, dtype=np.float32)
    >>> before = digest(weights)
    >>> weights[[3, 5]] = weights[[5, 3]]
    >>> digest(weights) == before
    False
    """
    plain = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    whole = plain.size - plain.size % (8 * LANES * TOGETHER)
    words = plain[:whole].view(np.uint64).reshape(-1, TOGETHER, LANES)
    sums = np.zeros((2, LANES), np.uint64)
    if len(words):
        _add(words, sums)
    return array.shape, array.dtype.str, sums.tobytes(), plain[whole:].tobytes()


@jit
def _add(words, sums):
    total, twice, zero = np.zeros(LANES, np.uint64), np.zeros(LANES, np.uint64), np.uint64(0)
    for i in range(len(words)):
        for j in range(LANES):
            part, parts = zero, zero
            for k in range(TOGETHER):
                part += words[i, k, j]
                parts += part
            twice[j] += np.uint64(TOGETHER) * total[j] + parts
            total[j] += part
    sums[0], sums[1] = total, twice
