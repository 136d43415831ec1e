"""Structural similarity against scikit-image, and by its slopes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from skimage.metrics import structural_similarity

from daskdl.errors import SettingsError, ShapeError
from daskdl.ops import losses
from tests.daskdl.lossmeans import check_slopes


def images(*shape, seed=0):
    """Return numbers from 0 to 1, two images not too different."""
    rng = np.random.default_rng([seed, *shape])
    first = rng.random(shape)
    return first, np.clip(first + 0.2 * rng.normal(size=shape), 0, 1)


@given(
    n=st.integers(1, 2),
    size=st.tuples(st.integers(11, 20), st.integers(11, 20)),
    channels=st.integers(1, 3),
    scale=st.sampled_from([1.0, 80.0]),
)
def test_it_is_scikit_images(n, size, channels, scale):
    a, b = (scale * x for x in images(n, *size, channels))
    expected = np.mean(
        [
            structural_similarity(
                a[i], b[i], data_range=scale, channel_axis=-1,
                gaussian_weights=True, sigma=1.5, use_sample_covariance=False,
            )
            for i in range(n)
        ]
    )  # fmt: skip
    found = losses.ssim(a, b, data_range=scale)
    assert float(found) == pytest.approx(1 - expected, abs=1e-9)
    single = losses.ssim(a.astype("f4"), b.astype("f4"), data_range=scale)
    assert single.dtype == np.float32
    assert float(single) == pytest.approx(1 - expected, abs=2e-5)


@given(
    shape=st.sampled_from([(1, 7, 8, 1), (2, 6, 5, 2), (2, 2, 5, 7, 1), (2, 2, 5, 5, 2)]),
    window=st.sampled_from([1, 3, 5]),
)
def test_slopes(shape, window):
    def ours(*x, **k):
        return losses.ssim(*x, window=window, sigma=0.8, **k)

    check_slopes(ours, *images(*shape))


def test_equal_images_far_from_zero_lose_nothing_in_float32():
    a, _ = images(1, 32, 32, 1)
    a = (1000 + a).astype("f4")
    assert float(losses.ssim(a, a)) == pytest.approx(0, abs=1e-6)


def test_mistakes():
    with pytest.raises(ShapeError, match=r"at least 11 x 11 pixels, found shape \(1, 10, 20, 1\)"):
        losses.ssim(np.zeros((1, 10, 20, 1)), np.zeros((1, 10, 20, 1)))
    with pytest.raises(SettingsError, match=r"odd window, .* found 4, 1\.5 and 1\.0"):
        losses.ssim(np.zeros((1, 12, 12, 1)), np.zeros((1, 12, 12, 1)), window=4)
