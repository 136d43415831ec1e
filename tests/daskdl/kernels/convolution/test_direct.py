"""Direct and depthwise convolutions, and the geometry of any."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from daskdl.kernels.convolution import depthwise, direct
from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.products.microkernel import COLUMNS, DEPTH
from daskdl.kernels.runtime.threads import thread_budget
from tests.daskdl.convolutions import check_passes, correlate_weight_gradient

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
    with thread_budget(threads):
        check_passes(direct, geometry, shape, filters)


@given(*[st.integers(1, 4)] * 3, st.integers(0, 3), st.integers(0, 3), st.integers(0, 20))
def test_size_counts_the_windows_that_fit(kernel, stride, dilation, before, after, length):
    geometry = Geometry((kernel, 1), (stride, 1), (before, after, 0, 0), dilation=(dilation, 1))
    length += geometry.reach[0]
    starts = np.arange(0, length + before + after, stride)
    fits = starts + (kernel - 1) * dilation < length + before + after
    assert geometry.size(length, 9) == (fits.sum(), 9)


@pytest.mark.parametrize(
    "geometry", [Geometry((5, 5), (1, 1), (2,) * 4), Geometry((2, 3), (1, 1), (0, 1, 2, 0), (2, 1))]
)
def test_the_adjoint_goes_back_to_the_image(geometry):
    size = geometry.size(9, 11)
    assert geometry.adjoint.size(*size) == (9, 11)
    assert geometry.adjoint.adjoint == geometry
    forth, back = geometry.offsets(), geometry.adjoint.offsets()
    np.testing.assert_array_equal(back[::-1], -forth)


pairs = st.tuples(st.integers(1, 4), st.integers(1, 4))


@pytest.mark.slow
@given(
    kernel=pairs,
    stride=pairs,
    dilation=pairs,
    pad=st.tuples(*[st.integers(0, 3)] * 4),
    channels=st.sampled_from([1, 2, 7, 8, 13, 32, 45, 100]),
    more=pairs,
    threads=st.sampled_from([1, 2]),
)
def test_three_passes_depthwise(kernel, stride, dilation, pad, channels, more, threads):
    geometry = Geometry(kernel, stride, pad, dilation, channels)
    shape = (2, geometry.reach[0] + more[0], geometry.reach[1] + more[1], channels)
    with thread_budget(threads):
        check_passes(depthwise, geometry, shape, channels, tolerance=1e-12)


@pytest.mark.slow
@given(
    pad=st.tuples(*[st.integers(0, 3)] * 4),
    channels=st.sampled_from([16, 48, 96, 128]),
    more=pairs,
    dtype=st.sampled_from(["f4", "f8"]),
)
def test_gradients_to_3x3_weights(pad, channels, more, dtype):
    geometry = Geometry((3, 3), (1, 1), pad, (1, 1), channels)
    shape = (2, max(1, 2 + more[0] - pad[0]), max(1, 2 + more[1] - pad[2]), channels)
    rows, columns = (shape[1] + sum(pad[:2]) - 2, shape[2] + sum(pad[2:]) - 2)
    assume(min(rows, columns) > 0)
    rng = np.random.default_rng(channels)
    x = rng.normal(size=shape).astype(dtype)
    dy = rng.normal(size=(2, rows, columns, channels)).astype(dtype)
    results = []
    for threads in (1, 2):
        with thread_budget(threads):
            results.append(depthwise.weight_gradient(x, dy, geometry))
    np.testing.assert_array_equal(*results)
    wanted = correlate_weight_gradient(x.astype("f8"), dy.astype("f8"), geometry)
    np.testing.assert_allclose(results[0], wanted, rtol=0, atol=3e-5 if dtype == "f4" else 1e-12)
