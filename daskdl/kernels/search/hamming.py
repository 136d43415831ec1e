"""The nearest codes by Hamming distance: all threads compare every code, in vectors.

Codes lie in planes, the first 64 bits of all of them before the next 64, so that a vector holds the
same word of several codes. A query first computes only the least distance of a group of codes. Most
groups are farther than the codes found so far; they are not searched one by one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from daskdl.kernels.runtime.jit import fastjit, jit
from daskdl.kernels.runtime.team import over_range
from daskdl.kernels.runtime.threads import threads

Words = NDArray[np.uint64]
Numbers = NDArray[np.int64]

#: Codes whose least distance is computed together; codes that stay in the cache for all queries.
GROUP, BLOCK = 256, 2048
#: Least codes of a thread.
LEAST = 1 << 14
#: More than any distance.
FAR = 1 << 40


def planes(codes: NDArray[np.uint8]) -> Words:
    """Return codes (n, bytes) as planes of 64 bits, uint64 (words, n); zeros fill the last word.

    There are 1, 2 or a multiple of 4 words.
    """
    n, size = codes.shape
    words = -(-size // 8)
    words = words if words < 3 else -(-words // 4) * 4
    result = np.empty((words, n), np.uint64)
    for start in range(0, n, 1 << 16):  # a piece that stays in the cache
        part = codes[start : start + (1 << 16)]
        whole = np.zeros((len(part), 8 * words), np.uint8)
        whole[:, :size] = part
        result[:, start : start + len(part)] = whole.view(np.uint64).T
    return result


def nearest(codes: Words, queries: Words, k: int) -> tuple[Numbers, Numbers]:
    """Return distances and numbers (q, k) of the k nearest codes of each query, the nearest first.

    Codes (words, n) and queries (words, q) have the form of :func:`planes`. Codes of equal distance
    keep their order.
    """
    parts, count = threads(), queries.shape[1]
    distances = np.full((parts, count, k), FAR, np.int64)
    numbers = np.full((parts, count, k), -1, np.int64)
    over_range(_nearest, codes.shape[1], LEAST, codes, queries.T.copy(), distances, numbers)
    if parts == 1:
        return distances[0], numbers[0]
    # parts are in order, so a stable sort keeps codes of equal distance in order
    flat = np.moveaxis(distances, 0, 1).reshape(count, -1)
    order = np.argsort(flat, axis=1, kind="stable")[:, :k]
    candidates = np.moveaxis(numbers, 0, 1).reshape(count, -1)
    return np.take_along_axis(flat, order, 1), np.take_along_axis(candidates, order, 1)


def within(codes: Words, queries: Words, radius: int) -> tuple[Numbers, Numbers, Numbers]:
    """Return all codes within a radius of each query: offsets (q + 1,), numbers and distances.

    Results of query i lie from offsets[i] to offsets[i + 1], in the order of the codes.
    """
    parts, rows = threads(), queries.T.copy()
    nothing = np.zeros(0, np.int64)
    counts = np.zeros((len(rows), parts), np.int64)
    arguments = codes, rows, radius, counts
    over_range(_within, codes.shape[1], LEAST, *arguments, counts, nothing, nothing, False)
    ends = np.cumsum(counts.reshape(-1))
    starts = (ends - counts.reshape(-1)).reshape(counts.shape)
    numbers, distances = (np.empty(int(counts.sum()), np.int64) for _ in range(2))
    offsets = np.append(starts[:, 0], numbers.size)
    over_range(_within, codes.shape[1], LEAST, *arguments, starts, numbers, distances, True)
    return offsets, numbers, distances


@fastjit
def _least(codes, start, stop, query, far):
    """Return the least distance of some codes to a query; ``far`` is memory for the distances."""
    first, n, words = np.uintp(start), np.uintp(stop - start), codes.shape[0]
    nothing = np.int64(0)
    for w in range(words if words < 4 else 0):
        bits = query[w]
        for i in range(n):
            far[i] = (far[i] if w else nothing) + popcount(codes[w, first + i] ^ bits)
    for w in range(0, words if words >= 4 else 0, 4):
        a, b, c, d = query[w], query[w + 1], query[w + 2], query[w + 3]
        for i in range(n):
            k = first + i
            near = popcount(codes[w, k] ^ a) + popcount(codes[w + 1, k] ^ b)
            near += popcount(codes[w + 2, k] ^ c) + popcount(codes[w + 3, k] ^ d)
            far[i] = (far[i] if w else nothing) + near
    least = np.int64(FAR)
    for i in range(n):
        least = min(least, far[i])
    return least


@fastjit
def _distance(codes, i, query):
    total = np.int64(0)
    for w in range(codes.shape[0]):
        total += popcount(codes[w, i] ^ query[w])
    return total


@jit
def _nearest(codes, queries, distances, numbers, which, start, stop):
    """Search a part: each query has candidates in the order of codes, cut to k if there is no room.

    A candidate is nearer than the k-th nearest so far, whose distance follows from the counts of
    candidates by distance.
    """
    k, bits = distances.shape[2], 64 * codes.shape[0]
    room = 2 * k + 64
    count_of = np.zeros(queries.shape[0], np.int64)
    near = np.empty((queries.shape[0], room), np.int64)
    at = np.empty((queries.shape[0], room), np.int64)
    counts = np.zeros((queries.shape[0], bits + 1), np.int64)
    limits = np.full(queries.shape[0], bits + 1, np.int64)
    far = np.empty(GROUP, np.int64)
    for block in range(start, stop, BLOCK):
        for q in range(queries.shape[0]):
            query = queries[q]
            for group in range(block, min(block + BLOCK, stop), GROUP):
                end = min(group + GROUP, stop)
                if _least(codes, group, end, query, far) >= limits[q]:
                    continue
                for i in range(group, end):
                    d = _distance(codes, i, query)
                    if d >= limits[q]:
                        continue
                    if count_of[q] == room:
                        count_of[q] = _cut(near[q], at[q], counts[q], room, k)
                    near[q, count_of[q]], at[q, count_of[q]] = d, i
                    count_of[q] += 1
                    counts[q, d] += 1
                    limits[q] = _limit(counts[q], limits[q], k)
    for q in range(queries.shape[0]):
        count_of[q] = _cut(near[q], at[q], counts[q], count_of[q], k)
        order = np.argsort(near[q, : count_of[q]], kind="mergesort")
        for j in range(count_of[q]):
            distances[which, q, j], numbers[which, q, j] = near[q, order[j]], at[q, order[j]]


@jit
def _limit(counts, before, k):
    """Return the distance of the k-th nearest so far: codes at it or beyond are not needed."""
    total = 0
    for d in range(min(before, counts.size)):
        total += counts[d]
        if total >= k:
            return d
    return before


@jit
def _cut(near, at, counts, filled, k):
    """Keep the k nearest candidates, of equal ones the first, in order; return their number."""
    edge, total = 0, 0
    while edge < counts.size and total + counts[edge] <= k:
        total += counts[edge]
        edge += 1
    spare, length = k - total, 0
    for j in range(filled):
        if near[j] < edge or (near[j] == edge and spare > 0):
            if near[j] == edge:
                spare -= 1
            near[length], at[length] = near[j], at[j]
            length += 1
    if edge < counts.size:
        counts[edge] = k - total - spare
        counts[edge + 1 :] = 0
    return length


@jit
def _within(codes, queries, radius, counts, starts, numbers, distances, write, which, start, stop):
    """Count the codes within the radius, or write them from ``starts`` on."""
    far = np.empty(GROUP, np.int64)
    for block in range(start, stop, BLOCK):
        for q in range(queries.shape[0]):
            query = queries[q]
            for group in range(block, min(block + BLOCK, stop), GROUP):
                end = min(group + GROUP, stop)
                if _least(codes, group, end, query, far) > radius:
                    continue
                for i in range(group, end):
                    d = _distance(codes, i, query)
                    if d > radius:
                        continue
                    if write:
                        numbers[starts[q, which]], distances[starts[q, which]] = i, d
                        starts[q, which] += 1
                    else:
                        counts[q, which] += 1


@intrinsic
def popcount(typing: Any, word: Any) -> Any:
    """Return the number of set bits of a uint64, int64."""
    if word != types.uint64:
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate
