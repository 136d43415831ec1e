"""Codes of bits compared by numpy: the nearest ones, those within a radius, and all near pairs.

Codes lie in planes, uint64 (words, n): the first 64 bits of all of them before the next 64.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime.threads import threads

Words = NDArray[np.uint64]
Numbers = NDArray[np.int64]
Distances = NDArray[np.int32]

#: Codes that are compared at once, so that their words stay in the cache.
BLOCK = 1 << 16


def planes(codes: NDArray[np.uint8]) -> Words:
    """Return codes (n, bytes) as planes of 64 bits, uint64 (words, n); zeros fill the last word."""
    whole = np.pad(codes, ((0, 0), (0, -codes.shape[1] % 8)))
    return np.ascontiguousarray(whole.view(np.uint64).T)


def nearest(codes: Words, queries: Words, k: int) -> tuple[Numbers, Numbers]:
    """Return distances and numbers (q, k) of the k nearest codes of each query, the nearest first.

    Codes (words, n), at least k of them, and queries (words, q) are planes. Codes of equal distance
    keep their order.
    """
    distances, numbers = np.empty((2, queries.shape[1], k), np.int64)

    def search(q: int) -> None:
        far = _distances(codes, queries[:, q : q + 1])
        some = np.flatnonzero(far <= np.partition(far, k - 1)[k - 1])
        numbers[q] = some[np.argsort(far[some], kind="stable")[:k]]
        distances[q] = far[numbers[q]]

    with ThreadPoolExecutor(threads()) as pool:
        list(pool.map(search, range(queries.shape[1] if k else 0)))
    return distances, numbers


def within(codes: Words, queries: Words, radius: int) -> tuple[Numbers, Numbers, Numbers]:
    """Return all codes within a radius of each query: offsets (q + 1,), numbers and distances.

    Results of query i lie from offsets[i] to offsets[i + 1], in the order of the codes.
    """

    def search(q: int) -> tuple[Numbers, Distances]:
        far = _distances(codes, queries[:, q : q + 1])
        near = np.flatnonzero(far <= radius)
        return near, far[near]

    with ThreadPoolExecutor(threads()) as pool:
        near = [(np.empty(0, int), np.empty(0, int)), *pool.map(search, range(queries.shape[1]))]
    numbers, distances = (
        np.concatenate(parts).astype(np.int64) for parts in zip(*near, strict=True)
    )
    return np.cumsum([len(some) for some, _ in near]), numbers, distances


def near_pairs(codes: Words, bits: int, radius: int, most: int) -> tuple[int, Numbers, Numbers]:
    """Return the number of pairs of codes (words, n) that differ in at most ``radius`` bits.

    Then all pairs, sorted numbers of codes (m, 2), the smaller first, and their distances (m,);
    they are not complete if there are more than ``most``.

    Bits are cut into radius + 1 parts, so that two codes within the radius have an equal part. Only
    codes with an equal part are compared (M. Norouzi, A. Punjani and D. J. Fleet, Fast Search in
    Hamming Space with Multi-Index Hashing, CVPR 2012).
    """
    n, edges = codes.shape[1], np.linspace(0, bits, radius + 2).astype(int)
    if radius + 1 >= min(bits, 2 ** (bits // (radius + 1))):
        edges = np.zeros(2, int)  # parts would not select: one without bits, which all codes share
    keys = [_keys(codes, start, stop) for start, stop in pairwise(edges.tolist())]
    count, parts = 0, [np.empty((3, 0), np.int64)]
    for part, key in enumerate(keys):
        order = np.argsort(key, kind="stable")
        ordered = key[order]
        # Places of codes whose key the code ``step`` places behind them has, too.
        step, places = 1, np.arange(n - 1)
        while (places := places[ordered[places] == ordered[places + step]]).size:
            i, j = order[places], order[places + step]
            far = _distances(codes[:, i], codes[:, j])
            near = far <= radius
            for other in keys[:part]:  # which has found the pair
                near &= other[i] != other[j]
            count += int(np.count_nonzero(near))
            if count <= most:
                parts.append(np.stack([np.minimum(i, j), np.maximum(i, j), far])[:, near])
            step += 1
            places = places[places < n - step]
    together = np.concatenate(parts, axis=1)
    first, second, distances = together[:, np.lexsort(together[1::-1])]
    return count, np.stack([first, second], axis=1), distances


def _distances(codes: Words, others: Words) -> Distances:
    """Return the distances of codes (words, n) to others (words, n) or one (words, 1), (n,)."""
    far = np.empty(codes.shape[1], np.int32)
    for start in range(0, far.size, BLOCK):
        part = np.s_[:, start : start + BLOCK]
        other = others if others.shape[1] == 1 else others[part]
        np.bitwise_count(codes[part] ^ other).sum(0, dtype=np.int32, out=far[part[1]])
    return far


def _keys(codes: Words, start: int, stop: int) -> Words:
    """Return the bits ``start`` to ``stop`` of codes, at most 64, (n,)."""
    width = min(stop - start, 64)
    if width == 0:
        return np.zeros(codes.shape[1], np.uint64)
    word, shift = divmod(start, 64)
    keys = codes[word] >> np.uint64(shift)
    if shift + width > 64:
        keys |= codes[word + 1] << np.uint64(64 - shift)
    return keys & np.uint64(2**width - 1)
