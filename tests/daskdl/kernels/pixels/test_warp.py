"""Affine maps against SciPy's interpolation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

from daskdl.kernels.pixels.warp import warp
from daskdl.kernels.runtime.threads import thread_budget

MAPS = np.array(
    [
        [[1, 0, 0], [0, 1, 0]],
        [[0.9, 0.3, -4.2], [-0.2, 1.1, 3.3]],
        [[0, 1, 2], [1, 0, -3]],
        [[2.5, 0, 0.7], [0, 2.5, -10]],
    ],
    float,
)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_it_is_scipys(channels, dtype):
    images = np.random.default_rng(0).integers(0, 256, (4, 23, 31, channels)).astype(dtype)
    fill = np.linspace(10, 200, channels)
    results = np.empty((4, 40, 37, channels), dtype)
    with thread_budget(2):
        warp(list(images), MAPS, list(results), fill)
    i, j = np.indices((40, 37))
    for image, m, result in zip(images, MAPS, results, strict=True):
        places = [m[1, 0] * j + m[1, 1] * i + m[1, 2], m[0, 0] * j + m[0, 1] * i + m[0, 2]]
        for c in range(channels):
            plane = image[..., c].astype(float)
            # Beyond the edge it is the fill's, to which the last pixels fade.
            exact = ndimage.map_coordinates(plane, places, order=1, mode="grid-constant",
                                            cval=fill[c])  # fmt: skip
            atol = 0.5 + 1e-2 if dtype == np.uint8 else 1e-2
            np.testing.assert_allclose(result[..., c], exact, rtol=0, atol=atol)
