"""Hamming distances: the nearest codes, and duplicates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.kernels.runtime.threads import thread_budget
from daskdl.kernels.search import duplicates, hamming


def codes_of(n, size, seed, ties=False):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 4 if ties else 256, (n, size), dtype=np.uint8)


def all_distances(codes, queries):
    return np.bitwise_count(codes[None] ^ queries[:, None]).sum(2, dtype=np.int64)


@given(
    n=st.integers(1, 700),
    size=st.sampled_from([1, 2, 8, 9, 16, 24, 32, 40, 64]),
    k=st.integers(1, 60),
    seed=st.integers(0, 99),
    ties=st.booleans(),
)
def test_the_nearest_codes_and_of_equal_ones_the_first(n, size, k, seed, ties):
    codes, queries = codes_of(n, size, seed, ties), codes_of(3, size, seed + 1, ties)
    k = min(k, n)
    distances, numbers = hamming.nearest(hamming.planes(codes), hamming.planes(queries), k)
    expected = all_distances(codes, queries)
    order = np.argsort(expected, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(numbers, order)
    np.testing.assert_array_equal(distances, np.take_along_axis(expected, order, 1))


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_many_codes_on_threads(threads):
    codes, queries = codes_of(70_001, 4, 0), codes_of(5, 4, 1)
    planes, asked = hamming.planes(codes), hamming.planes(queries)
    expected = all_distances(codes, queries)
    with thread_budget(threads):
        nearest, numbers = hamming.nearest(planes, asked, 300)
        offsets, near, distances = hamming.within(planes, asked, 5)
    order = np.argsort(expected, axis=1, kind="stable")[:, :300]
    np.testing.assert_array_equal(numbers, order)
    np.testing.assert_array_equal(nearest, np.take_along_axis(expected, order, 1))
    for q, row in enumerate(expected):
        of_query = slice(offsets[q], offsets[q + 1])
        np.testing.assert_array_equal(near[of_query], np.flatnonzero(row <= 5))
        np.testing.assert_array_equal(distances[of_query], row[row <= 5])


def test_codes_that_come_nearer_and_nearer_push_all_others_out():
    """The worst order: every code is a candidate."""
    steps = np.arange(256)[::-1]
    codes = np.packbits(np.arange(256)[None] < steps[:, None], axis=1)
    distances, numbers = hamming.nearest(hamming.planes(codes), hamming.planes(0 * codes[:1]), 7)
    assert distances.tolist() == [[*range(7)]]
    assert numbers.tolist() == [[255, 254, 253, 252, 251, 250, 249]]


def near_copies(n, size, seed):
    """Return codes, the second half of them copies of others with up to 4 bits flipped."""
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
