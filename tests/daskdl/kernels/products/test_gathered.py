"""Rows of several arrays times weights: what numpy makes of the arrays joined and normed."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.convolution.inference import Convolution
from daskdl.kernels.convolution.joined import JoinedConvolution
from daskdl.kernels.products import gathered
from daskdl.kernels.runtime.threads import thread_budget

WIDTHS = (16, 48, 32, 64)
POINT = Geometry((1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1)


def convolution(channels: int, filters: int) -> Convolution:
    rng = np.random.default_rng(1)
    weight = rng.standard_normal((filters, 1, 1, channels), np.float32)
    return Convolution(weight, rng.standard_normal(filters, np.float32), POINT, 8)


def arrays(images: int, side: int, widths=WIDTHS) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal((images, side, side, w), np.float32) for w in widths]


@pytest.mark.parametrize("filters", [8, 24, 128, 200])
@pytest.mark.parametrize(("images", "side"), [(1, 1), (1, 7), (3, 20)])
def test_it_is_the_convolution_of_what_is_joined_and_normed(images, side, filters):
    parts, plain = arrays(images, side), convolution(sum(WIDTHS), filters)
    rng = np.random.default_rng(2)
    scale, shift = rng.standard_normal((2, sum(WIDTHS)), np.float32)
    joined = np.concatenate(parts, -1)
    beside = rng.standard_normal((images, side, side, filters), np.float32)
    normed = np.clip(joined * scale + shift, 0, 1.5)
    for own, x, more in (
        (JoinedConvolution(plain), joined, (None, -np.inf, np.inf)),
        (JoinedConvolution(plain, scale, shift, 0.0, 1.5), normed, (beside, 0.0, np.inf)),
    ):
        expected = plain(x, *more)
        for threads in (1, 2):
            with thread_budget(threads):
                found = own(*more, *parts)
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)


def test_an_image_has_the_same_bits_in_any_batch():
    parts, own = arrays(4, 14), JoinedConvolution(convolution(sum(WIDTHS), 96))
    whole = own(None, 0.0, np.inf, *parts)
    for threads in (1, 2):
        with thread_budget(threads):
            alone = own(None, 0.0, np.inf, *(part[2:3].copy() for part in parts))
        np.testing.assert_array_equal(alone, whole[2:3])


def test_what_is_not_a_number_stays():
    parts = arrays(1, 3, (16, 16))
    parts[1][0, 1, 1, 3] = np.nan
    found = JoinedConvolution(convolution(32, 8), low=0.0, high=1.0)(None, -np.inf, np.inf, *parts)
    assert np.isnan(found[0, 1, 1]).all()
    assert np.isnan(found).sum() == 8


def test_arrays_are_read_by_whole_vectors():
    assert gathered.serves([16, 64])
    assert not gathered.serves([16, 24])
