"""Attention, backward: scores are computed again, tile by tile, and used for three gradients.

T. Dao et al., arXiv 2205.14135. One thread computes a head, so that its sums have one order.
"""

from __future__ import annotations

import numpy as np

from daskdl.kernels.attention import tiles
from daskdl.kernels.attention.tiles import APART, across, along, depth_of, filled
from daskdl.kernels.attention.weights import (
    CHANNELS,
    DROPPED,
    KEYS,
    QUERIES,
    VALUES,
    drop,
    hide,
    place_of,
    probabilities,
    score_gradients,
    seen,
)
from daskdl.kernels.products.microkernel import COLUMNS, address, keep
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.vectors.reduce import row_dot

#: Queries of a tile.
TOGETHER = 96


@jit
def backward(plan, settings, kind, mask, draws, stats, which, start, stop):
    """Compute the gradients of some heads; see :func:`daskdl.kernels.attention.forward.forward`.

    The arrays of the plan are queries, keys, values, result, and gradients to the result, to
    queries, to keys and to values.
    """
    keys, limit = draws
    t, s, c, d = plan[QUERIES], plan[KEYS], plan[CHANNELS], plan[VALUES]
    like, size, step, line = settings, settings.itemsize, kind.itemsize, COLUMNS * kind.itemsize
    tile, wide_c, wide_d = tiles.keys_of_tile(s), filled(c), filled(d)
    wide_s, wide_t = filled(s), filled(TOGETHER)
    deep_c, deep_d = depth_of(kind, wide_c), depth_of(kind, wide_d)
    deep_s, deep_t = depth_of(kind, wide_s), depth_of(kind, wide_t)
    apart, row_s = tile + APART, (tile + APART) * size

    rows_c, rows_d = np.empty((tile, wide_c), like.dtype), np.empty((tile, wide_d), like.dtype)
    words_c, words_d = np.empty((tile, deep_c), kind.dtype), np.empty((tile, deep_d), kind.dtype)
    pairs_c = np.empty((-(-tile // 2), wide_c), kind.dtype)
    turned_keys = np.empty((wide_s // COLUMNS, deep_c, COLUMNS), kind.dtype)
    turned_values = np.empty((wide_s // COLUMNS, deep_d, COLUMNS), kind.dtype)
    key_panels = np.empty((wide_c // COLUMNS, deep_s, COLUMNS), kind.dtype)
    query, to_query = np.empty((wide_t, wide_c), like.dtype), np.empty((wide_t, wide_c), like.dtype)
    result, to_result = (
        np.empty((wide_t, wide_d), like.dtype),
        np.empty((wide_t, wide_d), like.dtype),
    )
    query_words, pairs_q = (
        np.empty((wide_t, deep_c), kind.dtype),
        np.empty((wide_t, wide_c), kind.dtype),
    )
    result_words, pairs_r = (
        np.empty((wide_t, deep_d), kind.dtype),
        np.empty((wide_t, wide_d), kind.dtype),
    )
    query_panels = np.empty((wide_c // COLUMNS, deep_t, COLUMNS), kind.dtype)
    result_panels = np.empty((wide_d // COLUMNS, deep_t, COLUMNS), kind.dtype)
    scores, gradients = np.empty((wide_t, apart), like.dtype), np.empty((wide_t, apart), like.dtype)
    score_words = np.empty((wide_t, depth_of(kind, apart)), kind.dtype)
    score_pairs = np.empty((wide_t, apart), kind.dtype)
    to_keys, to_values = (
        np.empty((wide_s, wide_c), like.dtype),
        np.empty((wide_s, wide_d), like.dtype),
    )
    inner = np.empty(TOGETHER, like.dtype)
    drawn = np.empty((4, -(-tile // 4)), np.uint32)
    table = tiles.table_for(max(TOGETHER, tile))
    tiles.begin(kind)
    for head in range(start, stop):
        for k in range(0, s, tile):
            n = min(tile, s - k)
            place, row = place_of(plan, 1, head)
            tiles.rows_from(like, place + k * row, row, n, c, rows_c)
            for_b = along(kind, rows_c, filled(n), words_c)
            tiles.turned_panels_of(kind, for_b, filled(n), deep_c, turned_keys, k // COLUMNS)
            for_b = across(kind, rows_c, n, pairs_c)
            tiles.panels_of(kind, for_b, depth_of(kind, n), wide_c, key_panels, depth_of(kind, k))
            place, row = place_of(plan, 2, head)
            tiles.rows_from(like, place + k * row, row, n, d, rows_d)
            for_b = along(kind, rows_d, filled(n), words_d)
            tiles.turned_panels_of(kind, for_b, filled(n), deep_d, turned_values, k // COLUMNS)
        to_keys[:], to_values[:] = 0, 0
        for first in range(0, t, TOGETHER):
            count = min(TOGETHER, t - first)
            deep = depth_of(kind, count)
            place, row = place_of(plan, 0, head)
            tiles.rows_from(like, place + first * row, row, count, c, query)
            place, row = place_of(plan, 3, head)
            tiles.rows_from(like, place + first * row, row, count, d, result)
            place, row = place_of(plan, 4, head)
            tiles.rows_from(like, place + first * row, row, count, d, to_result)
            for r in range(count):
                inner[r] = row_dot(result, to_result, r, d)
            from_q = along(kind, query, count, query_words)
            from_r = along(kind, to_result, count, result_words)
            for_b = across(kind, query, count, pairs_q)
            tiles.panels_of(kind, for_b, deep, wide_c, query_panels, 0)
            for_b = across(kind, to_result, count, pairs_r)
            tiles.panels_of(kind, for_b, deep, wide_d, result_panels, 0)
            to_query[:count] = 0
            for k in range(0, s, tile):
                n = min(tile, s - k)
                if not seen(plan, first + count - 1, k, n):
                    break
                panels = filled(n) // COLUMNS
                tiles.multiplied(
                    kind, (count, panels, depth_of(kind, c)),
                    address(from_q), from_q.shape[1] * step, step,
                    address(turned_keys) + k // COLUMNS * deep_c * line, deep_c * line,
                    address(scores), row_s, False, table,
                )  # fmt: skip
                hide(plan, mask, head, first, count, k, n, scores)
                probabilities(scores, count, settings[0], stats, head, first)
                tiles.multiplied(
                    kind, (count, panels, depth_of(kind, d)),
                    address(from_r), from_r.shape[1] * step, step,
                    address(turned_values) + k // COLUMNS * deep_d * line, deep_d * line,
                    address(gradients), row_s, False, table,
                )  # fmt: skip
                if plan[DROPPED]:
                    drop(plan, keys, limit, settings[1], head, first, count, k, n, drawn, gradients)
                score_gradients(scores, gradients, count, inner, settings[0])
                if plan[DROPPED]:
                    drop(plan, keys, limit, settings[1], head, first, count, k, n, drawn, scores)
                by_key = across(kind, scores, count, score_pairs)
                tiles.multiplied(
                    kind, (n, wide_d // COLUMNS, deep), address(by_key), step, apart * step,
                    address(result_panels), deep_t * line,
                    address(to_values) + k * wide_d * size, wide_d * size, True, table,
                )  # fmt: skip
                by_key = across(kind, gradients, count, score_pairs)
                tiles.multiplied(
                    kind, (n, wide_c // COLUMNS, deep), address(by_key), step, apart * step,
                    address(query_panels), deep_t * line,
                    address(to_keys) + k * wide_c * size, wide_c * size, True, table,
                )  # fmt: skip
                by_query = along(kind, gradients, count, score_words)
                tiles.multiplied(
                    kind, (count, wide_c // COLUMNS, depth_of(kind, n)),
                    address(by_query), by_query.shape[1] * step, step,
                    address(key_panels) + depth_of(kind, k) * line, deep_s * line,
                    address(to_query), wide_c * size, True, table,
                )  # fmt: skip
            place, row = place_of(plan, 5, head)
            tiles.rows_to(like, to_query, count, c, place + first * row, row)
        place, row = place_of(plan, 6, head)
        tiles.rows_to(like, to_keys, s, c, place, row)
        place, row = place_of(plan, 7, head)
        tiles.rows_to(like, to_values, s, d, place, row)
    tiles.end(kind)
    for array in (turned_keys, turned_values, key_panels, query_panels, result_panels):
        keep(array)
    for array in (query_words, result_words, score_words, score_pairs):
        keep(array)
    for array in (query, to_query, to_result, scores, gradients, to_keys, to_values):
        keep(array)
