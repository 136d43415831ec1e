"""The kernel alone: layouts of its arrays, and where its results lie in memory."""

from __future__ import annotations

import numpy as np

from daskdl.kernels.attention.attention import Weighing, attention, gradients


def test_layouts_have_the_same_bits_and_results_are_ordered_as_queries():
    rng = np.random.default_rng(0)
    by_step = rng.standard_normal((4, 2, 33, 3, 20), np.float32)  # (N, T, heads, C)
    views = [x.transpose(0, 2, 1, 3) for x in by_step]
    whole = [np.ascontiguousarray(x) for x in views]
    turned = [np.asfortranarray(x) for x in whole]
    how = Weighing(causal=True)
    results = []
    for q, k, v, dy in (views, whole, turned):
        y, saved = attention(q, k, v, how)
        results.append([y, *gradients(dy, saved, how)])
    for other in results[1:]:
        for one, same in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(one, same)
    assert results[0][0].transpose(0, 2, 1, 3).flags.c_contiguous
    assert results[1][0].flags.c_contiguous
