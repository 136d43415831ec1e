"""All pairs of codes within a radius, without a comparison of all pairs.

Bits are cut into radius + 1 parts, so that two codes within the radius have an equal part. Only
codes with an equal part are compared (M. Norouzi, A. Punjani and D. J. Fleet, Fast Search in
Hamming Space with Multi-Index Hashing, CVPR 2012).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.team import over_range
from daskdl.kernels.runtime.threads import threads
from daskdl.kernels.search.hamming import popcount

Words = NDArray[np.uint64]
Numbers = NDArray[np.int64]

#: Least codes of a thread.
LEAST = 1 << 10


def count(codes: Words, bits: int, radius: int) -> int:
    """Return the number of pairs that :func:`pairs` would return."""
    return sum(int(counts.sum()) for _, counts in _parts(codes, bits, radius))


def pairs(codes: Words, bits: int, radius: int) -> tuple[Numbers, Numbers]:
    """Return all pairs of codes (words, n) that differ in at most ``radius`` bits.

    Pairs are sorted numbers of codes (m, 2), the smaller first; distances are (m,).
    """
    pairs_of, far = [np.zeros((0, 2), np.int64)], [np.zeros(0, np.int64)]
    for arguments, counts in _parts(codes, bits, radius):
        ends = np.cumsum(counts)
        pairs_of.append(np.empty((int(ends[-1]), 2), np.int64))
        far.append(np.empty(int(ends[-1]), np.int64))
        over_range(
            _compare, codes.shape[1], LEAST, *arguments, ends - counts, pairs_of[-1], far[-1], True
        )
    together, distances = np.concatenate(pairs_of), np.concatenate(far)
    order = np.lexsort((together[:, 1], together[:, 0]))
    return together[order], distances[order]


def _parts(codes: Words, bits: int, radius: int) -> Any:
    """Yield the arguments of :func:`_compare` for each part, and its counts of pairs."""
    edges = _edges(bits, radius, codes.shape[1])
    nothing = np.zeros((0, 2), np.int64), np.zeros(0, np.int64)
    for part in range(len(edges) - 1):
        keys = np.empty(codes.shape[1], np.uint64)
        _keys(codes, edges[part], edges[part + 1], keys)
        order = np.argsort(keys, kind="stable")
        counts = np.zeros(threads(), np.int64)
        arguments = codes, keys[order], order, edges, part, radius
        over_range(_compare, codes.shape[1], LEAST, *arguments, counts, *nothing, False)
        yield arguments, counts


def _edges(bits: int, radius: int, n: int) -> Numbers:
    """Return the edges of a code's parts; one part without bits if parts would not select."""
    parts = radius + 1
    if parts >= bits or parts * n >= n * 2 ** (bits // parts):
        return np.zeros(2, np.int64)
    return np.linspace(0, bits, parts + 1).astype(np.int64)


@jit
def _key(codes, i, start, stop):
    """Return the bits ``start`` to ``stop`` of a code, at most 64."""
    width = min(stop - start, 64)
    if width == 0:
        return np.uint64(0)
    word, shift = start // 64, start % 64
    value = codes[word, i] >> np.uint64(shift)
    if shift + width > 64:
        value |= codes[word + 1, i] << np.uint64(64 - shift)
    if width < 64:
        value &= (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    return value


@jit
def _keys(codes, start, stop, keys):
    for i in range(keys.size):
        keys[i] = _key(codes, i, start, stop)


@jit
def _compare(
    codes, keys, order, edges, part, radius, starts, pairs, distances, write, which, first, last
):
    """Count the pairs whose first equal part is ``part``, or write them from ``starts`` on."""
    n = keys.size
    for a in range(first, last):
        i, b = order[a], a + 1
        while b < n and keys[b] == keys[a]:
            j, d = order[b], np.int64(0)
            b += 1
            for w in range(codes.shape[0]):
                d += popcount(codes[w, i] ^ codes[w, j])
            if d > radius:
                continue
            seen = False
            for before in range(part):
                low, high = edges[before], edges[before + 1]
                seen |= _key(codes, i, low, high) == _key(codes, j, low, high)
            if seen:
                continue
            if write:
                pairs[starts[which], 0], pairs[starts[which], 1] = min(i, j), max(i, j)
                distances[starts[which]] = d
            starts[which] += 1
