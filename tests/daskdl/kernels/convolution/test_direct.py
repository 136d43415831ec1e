"""Direct and depthwise convolutions, few channels or filters, and the geometry of any."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from daskdl.kernels.convolution import bfloat16, conv2d, depthwise, direct
from daskdl.kernels.convolution import few_channels as stem
from daskdl.kernels.convolution.few_filters import joined, together
from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.products.bfloat16 import along
from daskdl.kernels.products.microkernel import COLUMNS, DEPTH, WIDEST_COLUMNS
from daskdl.kernels.runtime.threads import thread_budget
from tests.daskdl.convolutions import check_passes, correlate, correlate_weight_gradient
from tests.daskdl.gradients import same_bits

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
def test_three_passes(geometry, shape, filters):
    with thread_budget(2):
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
    gradient = same_bits(lambda: depthwise.weight_gradient(x, dy, geometry))
    wanted = correlate_weight_gradient(x.astype("f8"), dy.astype("f8"), geometry)
    np.testing.assert_allclose(gradient, wanted, rtol=0, atol=3e-5 if dtype == "f4" else 1e-12)


@pytest.mark.parametrize("images", [1, 2])  # an odd number of pixels, an even one
def test_gradients_to_weights_from_pairs_of_pixels(images):
    rng = np.random.default_rng(0)
    x, dy = rng.integers(-9, 9, (images, 33, 35, 17)), rng.integers(-9, 9, (images, 17, 17, 19))
    geometry, like = Geometry((3, 3), (2, 2), (1, 1, 0, 0)), np.zeros((19, 3, 3, 17), "f4")
    pairs = (along(a.astype("f4")) for a in (x, dy))
    dw = bfloat16.weight_gradient(*pairs, geometry, like)
    np.testing.assert_array_equal(dw, correlate_weight_gradient(x, dy, geometry))


FEW_CASES = [
    (Geometry((7, 7), (2, 2), (3,) * 4), (2, 40, 37, 3), COLUMNS),  # a network's first layer
    (Geometry((3, 3), (1, 1), (1,) * 4), (1, 11, 19, 3), COLUMNS + 3),
    (Geometry((3, 3), (1, 1), (1,) * 4), (1, 11, 19, 3), 2 * COLUMNS),  # parts end within rows
    (Geometry((4, 2), (2, 1), (1, 1, 0, 0)), (3, 9, 8, 5), 6),  # rows are longer than images
    (Geometry((3, 3), (3, 2), (0, 2, 1, 0), (2, 1)), (1, 12, 10, 15), 2 * COLUMNS),
    (Geometry((1, 5)), (2, 3, 5, 1), 1),  # no padding, a single column
    (Geometry((7, 7)), (1, 8, 9, 15), 4),  # deeper than one sum
]


@pytest.mark.slow
@pytest.mark.parametrize(("geometry", "shape", "filters"), FEW_CASES)
def test_both_passes_with_few_channels(geometry, shape, filters, monkeypatch):
    monkeypatch.setattr(stem, "scratch", full_of_nan)
    assert stem.serves(geometry, shape[3])
    check_passes(stem, geometry, shape, filters)


def full_of_nan(name, shape, dtype):
    """Return memory of NaN, in place of reused memory with old numbers."""
    return np.full(shape, np.nan, dtype)


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


SAME3, SAME5 = Geometry((3, 3), (1, 1), (1,) * 4), Geometry((5, 5), (1, 1), (2,) * 4)
FEW = COLUMNS // 5

#: Geometries, shapes of x, filters; joined windows fill the rows, or leave some columns over.
CASES_FEWFILTERS = [
    (SAME3, (2, 7, 20, 3), 1),
    (SAME5, (2, 9, 28, 1), FEW),
    (Geometry((5, 5)), (3, 9, 18, 16), FEW),
    (SAME3, (1, 6, 2 * COLUMNS + 3, 20), 1),
    (Geometry((3, 4), (2, 1), (0, 1, 2, 0)), (2, 8, 23, 40), 3),
    (Geometry((2, 7), (1, 2), (0, 0, 3, 1)), (2, 5, 37, 2), 2),
    (Geometry((3, 5), (1, 1), (1, 0, 4, 4), (2, 1)), (1, 9, 14, 17), FEW),
]


@pytest.mark.parametrize(("geometry", "shape", "filters"), CASES_FEWFILTERS)
def test_results_are_the_plain_sum(geometry, shape, filters):
    rng = np.random.default_rng(filters)
    x, weight = rng.normal(size=shape), rng.normal(size=(filters, *geometry.kernel, shape[3]))
    expected = correlate(x, weight, geometry)
    assert together(geometry, filters, expected.shape[2]) > 1
    y = conv2d.forward(x, weight, geometry)
    np.testing.assert_allclose(y, expected, atol=1e-10)
    assert conv2d.forward(x, weight, geometry, y) is y
    np.testing.assert_allclose(y, 2 * expected, atol=1e-10)


@pytest.mark.parametrize("geometry", [SAME5, Geometry((5, 5)), Geometry((3, 5), (1, 1), (1,) * 4)])
def test_gradients_to_inputs_of_few_channels_are_the_adjoint(geometry):
    rng = np.random.default_rng(0)
    x, weight = rng.normal(size=(2, 11, 14, FEW)), rng.normal(size=(16, *geometry.kernel, FEW))
    assert together(geometry.adjoint, FEW, 14) > 1
    y = correlate(x, weight, geometry)
    dy = rng.normal(size=y.shape)
    dx = conv2d.input_gradient(dy, weight, geometry, 11, 14)
    np.testing.assert_allclose((dx * x).sum(), (dy * y).sum(), atol=1e-8)


@pytest.mark.parametrize(
    ("geometry", "filters", "columns"),
    [
        (SAME3, WIDEST_COLUMNS, 28),  # no column is idle
        (SAME3._replace(groups=2), 2, 28),
        (SAME3._replace(dilation=(1, 2)), 2, 28),
        (Geometry((3, 1)), 2, 28),  # neighbours see nothing together
        (Geometry((3, 3), (1, 3)), 2, 28),
        (SAME3._replace(pad=(1, 1, 1, -1)), 2, 28),
        (SAME3, 2, 0),
        (SAME3, 2, 1),
    ],
)
def test_windows_that_stay_by_themselves(geometry, filters, columns):
    assert together(geometry, filters, columns) == 1


def test_the_last_window_ends_behind_the_image():
    weight, geometry = joined(np.ones((2, 3, 3, 4)), SAME3, 7, 3)
    assert weight.shape == (6, 3, 5, 4)
    assert geometry == Geometry((3, 5), (1, 3), (1, 1, 1, 3))
    assert geometry.size(7, 7) == (7, 3)
    for i in range(3):
        group_weight = weight[2 * i : 2 * i + 2]
        assert group_weight[:, :, i : i + 3].all()
        assert group_weight.sum() == 2 * 9 * 4
