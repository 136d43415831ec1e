"""Tests of coarser and finer grids."""

from __future__ import annotations

import numpy as np

from nowcast.lagrangian.blocks import block_means, enlarge, resample


def test_means_of_whole_blocks_and_of_the_rest() -> None:
    field = np.arange(15, dtype=np.float32).reshape(3, 5)
    made = block_means(field, 2)
    assert made.shape == (2, 3)
    assert made[0, 0] == field[:2, :2].mean()
    assert made[1, 2] == field[2, 4] / 4
    assert block_means(field, 1) is field


def test_blocks_are_interpolated_and_the_ends_held() -> None:
    blocks = np.array([[[1.0, 3.0, 4.0]]], np.float32)
    made = enlarge(blocks, (2, 6), 2)
    at = (np.arange(6) + 0.5) / 2 - 0.5
    np.testing.assert_allclose(made, np.broadcast_to(np.interp(at, range(3), [1, 3, 4]), (1, 2, 6)))


def test_a_plane_stays_a_plane_on_another_grid() -> None:
    centres = (np.arange(8) + 0.5) * 3.0
    plane = np.broadcast_to(centres, (1, 8, 8)).astype(np.float32)
    made = resample(plane, 3.0, (12, 12), 2.0)
    inner = slice(1, -1)
    np.testing.assert_allclose(made[0, 5, inner], ((np.arange(12) + 0.5) * 2.0)[inner], rtol=1e-5)
