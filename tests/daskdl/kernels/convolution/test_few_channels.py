"""Gathered windows of few channels: shapes, threads, what is gathered."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.convolution import few_channels as stem
from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.products.microkernel import COLUMNS
from daskdl.kernels.runtime.threads import thread_budget
from tests.daskdl.convolutions import correlate, correlate_weight_gradient

CASES = [
    (Geometry((7, 7), (2, 2), (3,) * 4), (2, 40, 37, 3), COLUMNS),  # a network's first layer
    (Geometry((3, 3), (1, 1), (1,) * 4), (1, 11, 19, 3), COLUMNS + 3),
    (Geometry((3, 3), (1, 1), (1,) * 4), (1, 11, 19, 3), 2 * COLUMNS),  # parts end within rows
    (Geometry((4, 2), (2, 1), (1, 1, 0, 0)), (3, 9, 8, 5), 6),  # rows are longer than images
    (Geometry((3, 3), (3, 2), (0, 2, 1, 0), (2, 1)), (1, 12, 10, 15), 2 * COLUMNS),
    (Geometry((1, 5)), (2, 3, 5, 1), 1),  # no padding, a single column
    (Geometry((7, 7)), (1, 8, 9, 15), 4),  # deeper than one sum
]


@pytest.mark.parametrize(("geometry", "shape", "filters"), CASES)
def test_both_passes(geometry, shape, filters, monkeypatch):
    monkeypatch.setattr(stem, "scratch", full_of_nan)
    rng = np.random.default_rng(filters)
    x, weight = rng.normal(size=shape), rng.normal(size=(filters, *geometry.kernel, shape[3]))
    expected = correlate(x, weight, geometry)
    dy = rng.normal(size=expected.shape)
    y = np.full(expected.shape, np.nan)
    assert stem.serves(geometry, shape[3])
    stem.forward(x, weight, geometry, y, False)
    np.testing.assert_allclose(y, expected, atol=1e-10)
    stem.forward(x, weight, geometry, y, True)
    np.testing.assert_allclose(y, 2 * expected, atol=1e-10)
    dw = stem.weight_gradient(x, dy, geometry)
    np.testing.assert_allclose(dw, correlate_weight_gradient(x, dy, geometry), atol=1e-9)


def full_of_nan(name, shape, dtype):
    """Stand in for kept memory that holds what was there before."""
    return np.full(shape, np.nan, dtype)


@pytest.mark.parametrize("filters", [24, 12 * COLUMNS, 12 * COLUMNS + 8])
def test_bits_do_not_depend_on_threads(filters):
    rng = np.random.default_rng(0)
    geometry = Geometry((3, 3), (2, 2), (1,) * 4)
    x, weight = (rng.normal(size=s).astype("f4") for s in ((3, 43, 41, 3), (filters, 3, 3, 3)))
    results = []
    for n in (1, 2, 3):
        y = np.empty((3, 22, 21, filters), np.float32)
        with thread_budget(n):
            stem.forward(x, weight, geometry, y, False)
            results.append((y, stem.weight_gradient(x, y, geometry)))
    for other in results[1:]:
        for mine, theirs in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_an_empty_batch():
    geometry = Geometry((3, 3))
    y = np.empty((0, 3, 3, 4))
    stem.forward(np.empty((0, 5, 5, 2)), np.ones((4, 3, 3, 2)), geometry, y, False)
    dw = stem.weight_gradient(np.empty((0, 5, 5, 2)), y, geometry)
    np.testing.assert_array_equal(dw, np.zeros((4, 3, 3, 2)))


@pytest.mark.parametrize(
    ("geometry", "channels"),
    [
        (Geometry((3, 3)), stem.FEW),
        (Geometry((3, 3), groups=3), 3),
        (Geometry((3, 3), dilation=(1, 2)), 3),
        (Geometry((3, 1)), 3),
        (Geometry((11, 11)), 15),
    ],
)
def test_windows_that_are_not_gathered(geometry, channels):
    assert not stem.serves(geometry, channels)
