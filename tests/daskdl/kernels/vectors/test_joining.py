"""Channels side by side: what numpy's concatenate makes."""

from __future__ import annotations

import numpy as np

from daskdl.kernels.vectors.joining import InTurns, side_by_side


def test_rows_lie_side_by_side():
    rng = np.random.default_rng(0)
    parts = [rng.random((2, 3, 5, n), np.float32) for n in (1, 17, 0, 4)]
    np.testing.assert_array_equal(side_by_side(*parts), np.concatenate(parts, -1))


def test_numbers_of_two_arrays_come_in_turns():
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 2, 3, 5, 37), np.float32)
    for first, width in ((0, 37), (3, 33), (36, 1), (4, 0)):
        columns = slice(first, first + width)
        expected = np.stack([a[..., columns], b[..., columns]], -1).reshape(2, 3, 5, 2 * width)
        np.testing.assert_array_equal(InTurns(first, width)(a, b), expected)
