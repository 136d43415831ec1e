"""Direct convolutions, and the geometry of any."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.kernels.convolution import direct
from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.products.microkernel import COLUMNS, DEPTH
from daskdl.kernels.runtime.threads import thread_budget
from tests.daskdl.convolutions import correlate, correlate_weight_gradient

PLAIN = Geometry((3, 3), (2, 2), (1,) * 4)

CASES = [
    # more pixels than a block has, deeper than one sum, more than one panel
    (PLAIN, (2, 33, 35, DEPTH + 5), COLUMNS + 3),
    (Geometry((7, 7), (2, 2), (3,) * 4), (2, 40, 37, 3), COLUMNS),  # a network's first layer
    (Geometry((1, 1), (2, 2)), (2, 9, 8, 40), 2 * COLUMNS),  # three of four pixels are not seen
    (Geometry((2, 2), (3, 3)), (1, 11, 10, 20), 5),  # some pixels are not seen
    (PLAIN._replace(groups=4), (2, 9, 8, 12), 8),
    (Geometry((3, 3), (1, 1), (2,) * 4, (2, 2)), (1, 9, 9, 20), COLUMNS),
    (Geometry((1, 1), (1, 1)), (1, 1, 1, 1), 1),
]


@pytest.mark.parametrize(("geometry", "shape", "filters"), CASES)
@pytest.mark.parametrize("threads", [1, 2])
def test_three_passes(geometry, shape, filters, threads):
    rng = np.random.default_rng(filters)
    x = rng.normal(size=shape)
    weight = rng.normal(size=(filters, *geometry.kernel, shape[3] // geometry.groups))
    expected = correlate(x, weight, geometry)
    dy = rng.normal(size=expected.shape)
    with thread_budget(threads):
        y = np.full(expected.shape, np.nan)
        direct.forward(x, weight, geometry, y, False)
        np.testing.assert_allclose(y, expected, atol=1e-10)
        direct.forward(x, weight, geometry, y, True)
        np.testing.assert_allclose(y, 2 * expected, atol=1e-10)
        dw = direct.weight_gradient(x, dy, geometry)
        np.testing.assert_allclose(dw, correlate_weight_gradient(x, dy, geometry), atol=1e-9)
        dx = np.full_like(x, np.nan)
        direct.input_gradient(dy, weight, geometry, dx)
        np.testing.assert_allclose((dx * x).sum(), (dy * expected).sum(), rtol=1e-9)
        np.testing.assert_allclose(
            (dx * x**2).sum(), (dy * correlate(x**2, weight, geometry)).sum(), rtol=1e-9
        )


@pytest.mark.slow
def test_bits_do_not_depend_on_threads():
    rng = np.random.default_rng(0)
    x, weight = (rng.normal(size=s).astype("f4") for s in ((3, 23, 21, 24), (40, 3, 3, 24)))
    results = []
    for n in (1, 2, 3):
        y = np.empty((3, 12, 11, 40), np.float32)
        dx = np.empty_like(x)
        with thread_budget(n):
            direct.forward(x, weight, PLAIN, y, False)
            direct.input_gradient(y, weight, PLAIN, dx)
            results.append((y, dx, direct.weight_gradient(x, y, PLAIN)))
    for other in results[1:]:
        for mine, theirs in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(mine, theirs)


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
