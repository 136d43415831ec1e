"""Geometry: sizes of results, and which way a convolution is computed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.kernels.convolution.geometry import Geometry

SAME3, SAME5 = Geometry((3, 3), (1, 1), (1,) * 4), Geometry((5, 5), (1, 1), (2,) * 4)


@given(*[st.integers(1, 4)] * 3, st.integers(0, 3), st.integers(0, 3), st.integers(0, 20))
def test_size_counts_the_windows_that_fit(kernel, stride, dilation, before, after, length):
    geometry = Geometry((kernel, 1), (stride, 1), (before, after, 0, 0), dilation=(dilation, 1))
    length += geometry.reach[0]
    starts = np.arange(0, length + before + after, stride)
    fits = starts + (kernel - 1) * dilation < length + before + after
    assert geometry.size(length, 9) == (fits.sum(), 9)


def test_winograd_serves_small_square_kernels_at_stride_1():
    assert SAME3.by_winograd(8)
    assert SAME5.by_winograd(64)
    assert not SAME3.by_winograd(7)
    for other in ({"stride": (1, 2)}, {"kernel": (3, 5)}, {"dilation": (2, 1)}, {"groups": 2}):
        assert not SAME3._replace(**other).by_winograd(64)


@pytest.mark.parametrize("other", [{"pad": (0, 1, 0, 0)}, {"stride": (2, 1)}, {"kernel": (1, 2)}])
def test_pointwise_is_one_product(other):
    geometry = Geometry((1, 1))
    assert geometry.pointwise
    assert not geometry._replace(**other).pointwise


@pytest.mark.parametrize("geometry", [SAME5, Geometry((2, 3), (1, 1), (0, 1, 2, 0), (2, 1))])
def test_the_adjoint_goes_back_to_the_image(geometry):
    size = geometry.size(9, 11)
    assert geometry.adjoint.size(*size) == (9, 11)
    assert geometry.adjoint.adjoint == geometry
    forth, back = geometry.offsets(), geometry.adjoint.offsets()
    np.testing.assert_array_equal(back[::-1], -forth)
