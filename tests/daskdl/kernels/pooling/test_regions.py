"""Maxima over boxes: against numpy, box by box."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.pooling import regions as bins
from tests.daskdl.layouts import layouts


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_maxima_and_their_gradient(dtype):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 5, (2, 5, 6, 3)).astype(dtype)
    images = np.array([1, 0, 1])
    rows = np.sort(rng.integers(0, 6, (3, 2, 2)), -1)
    columns = np.sort(rng.integers(0, 7, (3, 4, 2)), -1)
    y, places = bins.maxima(x, images, rows, columns)
    dy, expected = rng.normal(size=y.shape).astype(dtype), np.zeros_like(x)
    for r, i, j in np.ndindex(3, 2, 4):
        (top, below), (left, right) = rows[r, i], columns[r, j]
        box = x[images[r], top:below, left:right].reshape(-1, 3)
        if not len(box):
            assert not y[r, i, j].any()
            assert (places[r, i, j] == -1).all()
            continue
        np.testing.assert_array_equal(y[r, i, j], box.max(0))
        for c, k in enumerate(box.argmax(0)):  # the first of equals
            row, column = divmod(k, right - left)
            expected[images[r], top + row, left + column, c] += dy[r, i, j, c]
    np.testing.assert_allclose(bins.gradient(dy, places, x.shape), expected, atol=1e-6)
    for other in layouts(x):
        np.testing.assert_array_equal(bins.maxima(other, images, rows, columns)[0], y)


def test_nan_is_seen():
    x = np.zeros((1, 2, 2, 1), "f4")
    x[0, 0, 1] = np.nan
    box = np.array([[[0, 2]]])
    assert np.isnan(bins.maxima(x, np.array([0]), box, box)[0]).all()
