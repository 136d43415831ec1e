"""Random numbers that are the same on any worker and at any time."""

from __future__ import annotations

import zlib
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import SettingsError


def generator(seed: int, purpose: str, *numbers: int) -> np.random.Generator:
    """Return the Generator of one draw of a run, by its seed, at least 0.

    Draws for different purposes are independent; so are draws of one purpose with different
    numbers, such as (epoch, iteration, shard). A negative number counts as its two's complement in
    64 bits.
    """
    if seed < 0:
        raise SettingsError(f"seed: expected at least 0, found {seed!r}")
    # SeedSequence pads with zeros: the count keeps (1,) and (1, 0) apart.
    entropy = [seed, zlib.crc32(purpose.encode()), len(numbers)]
    return np.random.default_rng(entropy + [n % 2**64 for n in numbers])


@lru_cache(maxsize=32)
def permutation(seed: int, epoch: int, shard: int, length: int) -> NDArray[np.int64]:
    """Return the order of a shard's samples in an epoch, int64 (length,); it is read-only."""
    order = generator(seed, "order", epoch, shard).permutation(length)
    order.flags.writeable = False
    return order


@lru_cache(maxsize=32)
def weighted(weights: bytes, n: int, seed: int, epoch: int, shard: int) -> NDArray[np.int64]:
    """Return n draws of an epoch by float64 weights, in a random order; they are read-only.

    Each index occurs n times its share of all weights, to within one.
    """
    draw, values = generator(seed, "weights", epoch, shard), np.frombuffer(weights)
    mixed = draw.permutation(len(values))
    ends = np.cumsum(values[mixed])
    at = np.searchsorted(ends / ends[-1] * n, np.arange(n) + draw.random(), side="right")
    result = draw.permutation(mixed[np.minimum(at, len(mixed) - 1)])
    result.flags.writeable = False
    return result
