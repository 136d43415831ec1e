"""Pairs within a radius are those of a comparison of all with all."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.runtime.threads import thread_budget
from daskdl.kernels.search import duplicates, hamming


def near_copies(n, size, seed):
    """Codes of which some are others with up to 4 bits turned."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 256, (n, size), dtype=np.uint8)
    for i in range(n // 2, n):
        bits = np.unpackbits(codes[rng.integers(0, i)])
        bits[rng.choice(8 * size, rng.integers(0, min(5, 8 * size)), replace=False)] ^= 1
        codes[i] = np.packbits(bits)
    return codes


@pytest.mark.parametrize("size", [1, 2, 8, 9, 32, 40])
@pytest.mark.parametrize("radius", [0, 1, 3, 12])
@pytest.mark.parametrize("threads", [1, 2])
def test_all_pairs(size, radius, threads):
    codes = near_copies(1500 if radius == 0 else 300, size, radius)
    if size < 2:
        codes = codes[:200]
    with thread_budget(threads):
        pairs, distances = duplicates.pairs(hamming.planes(codes), 8 * size, radius)
        count = duplicates.count(hamming.planes(codes), 8 * size, radius)
    all_ = np.bitwise_count(codes[None] ^ codes[:, None]).sum(2, dtype=np.int64)
    i, j = np.nonzero(np.triu(all_ <= radius, 1))
    np.testing.assert_array_equal(pairs, np.stack([i, j], 1))
    np.testing.assert_array_equal(distances, all_[i, j])
    assert count == len(i)
