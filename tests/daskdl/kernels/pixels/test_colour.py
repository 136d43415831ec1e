"""Channels mixed by matrices, and means of channels."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.pixels.colour import channel_means, mix
from daskdl.kernels.runtime.threads import thread_budget


@pytest.mark.parametrize("channels", [1, 3, 5])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_each_image_has_its_own_matrix(channels, dtype):
    rng = np.random.default_rng(0)
    white = 255 if dtype == np.uint8 else 1
    images = [(rng.random((n, 11, channels)) * white).astype(dtype) for n in (4, 7)]
    matrices = rng.normal(0.3, 0.5, (2, channels, channels + 1)).astype(np.float32)
    matrices[..., channels] *= white
    results = [np.empty_like(image) for image in images]
    mix(images, matrices, results, white)
    for image, matrix, result in zip(images, matrices, results, strict=True):
        exact = np.clip(image @ matrix[:, :channels].T + matrix[:, channels], 0, white)
        atol = 0.5 + 1e-3 if dtype == np.uint8 else 1e-5
        np.testing.assert_allclose(result, exact, rtol=0, atol=atol)
    mix(images, matrices, images, white)  # in place
    np.testing.assert_array_equal(images[0], results[0])


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_means_of_channels(channels, dtype):
    images = [
        np.random.default_rng(n).integers(0, 256, (n, 300, channels)).astype(dtype)
        for n in (200, 3)
    ]
    exact = [image.mean((0, 1), np.float64) for image in images]
    with thread_budget(2):
        np.testing.assert_allclose(channel_means(images), exact, rtol=1e-12)
