"""Channels side by side: what numpy's concatenate makes."""

from __future__ import annotations

import numpy as np

from daskdl.kernels.vectors.joining import side_by_side


def test_rows_lie_side_by_side():
    rng = np.random.default_rng(0)
    parts = [rng.random((2, 3, 5, n), np.float32) for n in (1, 17, 0, 4)]
    np.testing.assert_array_equal(side_by_side(*parts), np.concatenate(parts, -1))
