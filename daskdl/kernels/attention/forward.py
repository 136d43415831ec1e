"""Attention, forward: tiles of scores that are used up before they leave the caches.

A row's largest score and its sum of exponentials are updated from tile to tile (M. Milakov and N.
Gimelshein, arXiv 1805.02867; T. Dao et al., arXiv 2205.14135). Only the number of keys determines
the tiles, and so the bits of the result.
"""

from __future__ import annotations

import numpy as np

from daskdl.kernels.attention import tiles
from daskdl.kernels.attention.tiles import APART, along, depth_of, filled
from daskdl.kernels.attention.weights import (
    CHANNELS,
    DROPPED,
    KEYS,
    QUERIES,
    VALUES,
    drop,
    exponentials,
    hide,
    place_of,
    seen,
)
from daskdl.kernels.products.microkernel import COLUMNS, address, aligned, keep
from daskdl.kernels.runtime.jit import jit

#: Queries of a tile.
TOGETHER = 96


@jit
def forward(plan, settings, kind, mask, draws, stats, which, start, stop):
    """Compute tiles of queries, head after head.

    The plan's arrays are queries, keys, values and result, see
    :mod:`daskdl.kernels.attention.weights`. ``settings`` are the factors of scores and of weights
    that are not dropped; ``kind`` is an array of the products' dtype; ``draws`` are dropout's keys
    and limit. Each query's largest score and the reciprocal of its sum of exponentials are written
    to ``stats`` (heads, T, 2).
    """
    keys, limit = draws
    t, s, c, d = plan[QUERIES], plan[KEYS], plan[CHANNELS], plan[VALUES]
    like, size, line = settings, settings.itemsize, COLUMNS * kind.itemsize
    tile, blocks = tiles.keys_of_tile(s), -(-t // TOGETHER)
    wide_c, wide_d, wide_s = filled(c), filled(d), filled(s)
    deep_c, deep_s = depth_of(kind, wide_c), depth_of(kind, wide_s)

    some = np.empty((tile, max(wide_c, wide_d)), like.dtype)
    some_c, some_d = some.reshape(-1)[: tile * wide_c], some.reshape(-1)[: tile * wide_d]
    rows_c, rows_d = some_c.reshape(tile, wide_c), some_d.reshape(tile, wide_d)
    words = np.empty((tile, deep_c), kind.dtype)
    pairs = np.empty((-(-tile // 2), wide_d), kind.dtype)
    turned = aligned(kind, wide_s * deep_c).reshape(wide_s // COLUMNS, deep_c, COLUMNS)
    values = aligned(kind, wide_d * deep_s).reshape(wide_d // COLUMNS, deep_s, COLUMNS)
    query = np.empty((TOGETHER, wide_c), like.dtype)
    query_words = np.empty((TOGETHER, deep_c), kind.dtype)
    scores = aligned(like, TOGETHER * (tile + APART)).reshape(TOGETHER, tile + APART)
    score_words = np.empty((TOGETHER, depth_of(kind, tile + APART)), kind.dtype)
    result = np.empty((TOGETHER, wide_d), like.dtype)
    tops, sums = np.empty(TOGETHER, like.dtype), np.empty(TOGETHER, like.dtype)
    factors = np.empty(TOGETHER, like.dtype)
    drawn = np.empty((4, -(-tile // 4)), np.uint32)
    table = tiles.table_for(TOGETHER)
    tiles.begin(kind)
    current = -1
    for item in range(start, stop):
        head, first = item // blocks, item % blocks * TOGETHER
        count = min(TOGETHER, t - first)
        if head != current:
            current = head
            for k in range(0, s, tile):
                n = min(tile, s - k)
                place, row = place_of(plan, 1, head)
                tiles.rows_from(like, place + k * row, row, n, c, rows_c)
                for_b = along(kind, rows_c, filled(n), words)
                tiles.turned_panels_of(kind, for_b, filled(n), deep_c, turned, k // COLUMNS)
                place, row = place_of(plan, 2, head)
                tiles.rows_from(like, place + k * row, row, n, d, rows_d)
                for_b = tiles.across(kind, rows_d, n, pairs)
                tiles.panels_of(kind, for_b, depth_of(kind, n), wide_d, values, depth_of(kind, k))
        place, row = place_of(plan, 0, head)
        tiles.rows_from(like, place + first * row, row, count, c, query)
        from_q = along(kind, query, count, query_words)
        result[:count] = 0
        tops[:], sums[:] = -np.inf, 0
        for k in range(0, s, tile):
            n = min(tile, s - k)
            if not seen(plan, first + count - 1, k, n):
                break
            tiles.multiplied(
                kind, (count, filled(n) // COLUMNS, depth_of(kind, c)),
                address(from_q), from_q.shape[1] * kind.itemsize, kind.itemsize,
                address(turned) + k // COLUMNS * deep_c * line, deep_c * line,
                address(scores), (tile + APART) * size, False, table,
            )  # fmt: skip
            hide(plan, mask, head, first, count, k, n, scores)
            exponentials(scores, count, settings[0], tops, sums, factors)
            if plan[DROPPED]:
                drop(plan, keys, limit, settings[1], head, first, count, k, n, drawn, scores)
            for r in range(count):
                if k > 0 and factors[r] != 1:
                    for j in range(wide_d):
                        result[r, j] *= factors[r]
            from_p = along(kind, scores, count, score_words)
            tiles.multiplied(
                kind, (count, wide_d // COLUMNS, depth_of(kind, n)),
                address(from_p), from_p.shape[1] * kind.itemsize, kind.itemsize,
                address(values) + depth_of(kind, k) * line, deep_s * line,
                address(result), wide_d * size, k > 0, table,
            )  # fmt: skip
        for r in range(count):
            factor = like.dtype.type(1) / sums[r]
            stats[head, first + r, 0], stats[head, first + r, 1] = tops[r], factor
            for j in range(wide_d):
                result[r, j] *= factor
        place, row = place_of(plan, 3, head)
        tiles.rows_to(like, result, count, d, place + first * row, row)
    tiles.end(kind)
    for array in (turned, values):
        keep(array)
    for array in (query, scores, result):
        keep(array)
    for array in (query_words, score_words):
        keep(array)
