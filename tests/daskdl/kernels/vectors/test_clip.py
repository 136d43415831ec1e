"""Clipping by value against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.vectors.clip import clip


@pytest.mark.parametrize("n", [7, (1 << 20) + 3])
def test_it_is_numpys(n):
    x = np.random.default_rng(n).normal(size=n).astype(np.float32)
    x[1], x[2], x[3] = np.inf, -np.inf, np.nan
    kept = x.copy()
    np.testing.assert_array_equal(clip(x, 0.5, scale=2), np.clip(2 * x, -0.5, 0.5))
    np.testing.assert_array_equal(x, kept)
