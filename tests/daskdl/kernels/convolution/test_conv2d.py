"""Convolution kernels against the plain sum, on every path that the dispatch can take."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from daskdl.kernels.convolution import conv2d
from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.products.microkernel import COLUMNS
from daskdl.kernels.runtime.threads import thread_budget
from tests.daskdl.convolutions import correlate, correlate_weight_gradient, draw, geometries
from tests.daskdl.gradients import same_bits

SAME3, SAME5 = Geometry((3, 3), (1, 1), (1,) * 4), Geometry((5, 5), (1, 1), (2,) * 4)


@pytest.mark.slow
@given(case=geometries(), dtype=st.sampled_from([np.float64, np.float32]))
@example((SAME3, (2, 1, 1, 8), 8), np.float64)  # smaller than a tile
@example((SAME3, (1, 3, 5, 17), 9), np.float64)  # more channels than one pass of lanes
@example((SAME5, (1, 3, 2, 16), 16), np.float64)
@example((SAME5, (2, 9, 7, 8), 33), np.float64)
@example((Geometry((1, 1), (1, 1), (0,) * 4), (2, 4, 5, 3), 6), np.float64)
@example((Geometry((1, 1), (2, 3), (0,) * 4), (2, 4, 5, 3), 6), np.float64)
@example((Geometry((2, 4), (1, 1), (0, 1, 1, 2)), (2, 5, 5, 3), 6), np.float64)
@example((Geometry((3, 3), (2, 2), (1,) * 4), (2, 8, 9, 8), 8), np.float64)
def test_all_three_passes_are_the_plain_sum(case, dtype):
    geometry, shape, filters = case
    x, weight = draw(shape, (filters, *geometry.kernel, shape[3] // geometry.groups), dtype=dtype)
    y = conv2d.forward(x, weight, geometry)
    expected = correlate(x, weight, geometry)
    assert y.shape == expected.shape
    assert y.dtype == dtype
    close = np.testing.assert_allclose
    scale = 200 * np.finfo(dtype).eps * np.sqrt(weight[0].size)
    close(y, expected, atol=scale * np.abs(expected).max(), rtol=0)

    (dy,) = draw(y.shape, dtype=dtype)
    expected = correlate_weight_gradient(x, dy, geometry)
    dw = conv2d.weight_gradient(x, dy, geometry)
    assert dw.dtype == dtype
    close(dw, expected, atol=20 * scale * (np.abs(expected).max() + 1), rtol=0)

    dx = conv2d.input_gradient(dy, weight, geometry, *shape[1:3])
    assert dx.shape == x.shape
    assert dx.dtype == dtype
    # dx is the adjoint: <dy, A x> = <A' dy, x>
    products = dy * correlate(x, weight, geometry)
    close((dx * x).sum(), products.sum(), atol=40 * scale * (np.abs(products).sum() + 1), rtol=0)


@pytest.mark.slow
@given(case=geometries())
def test_with_out_the_result_is_added_in_place(case):
    geometry, shape, filters = case
    x, weight = draw(shape, (filters, *geometry.kernel, shape[3] // geometry.groups))
    y = conv2d.forward(x, weight, geometry)
    out = np.full_like(y, 2.0)
    assert conv2d.forward(x, weight, geometry, out) is out
    np.testing.assert_allclose(out, y + 2, atol=1e-12)
    prepared = np.full_like(y, 2.0)
    conv2d.prepared(weight, geometry)(x, prepared)
    np.testing.assert_allclose(prepared, out, atol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("channels", [2, 9])
@pytest.mark.parametrize("geometry", [SAME3, SAME5])
def test_prepared_adjoint_is_the_input_gradient(geometry, channels):
    weight, dy = draw((11, *geometry.kernel, channels), (2, 6, 7, 11))
    np.testing.assert_array_equal(
        conv2d.prepared_adjoint(weight, geometry)(dy),
        conv2d.input_gradient(dy, weight, geometry, 6, 7),
    )


STRIDED = Geometry((3, 3), (2, 2), (1,) * 4)


@pytest.mark.parametrize(
    ("geometry", "shape", "filters"),
    [
        pytest.param(STRIDED, (3, 23, 21, 24), 40, marks=pytest.mark.slow),  # direct
        *(
            pytest.param(STRIDED, (3, 43, 41, 3), n, marks=pytest.mark.slow)  # few channels
            for n in (24, 12 * COLUMNS, 12 * COLUMNS + 8)
        ),
        (SAME3, (5, 30, 29, 20), 2),  # few filters
        (SAME3._replace(groups=40), (3, 16, 17, 40), 40),  # depthwise
        (STRIDED._replace(groups=40), (3, 16, 17, 40), 40),
    ],
)
def test_bits_do_not_depend_on_threads(geometry, shape, filters):
    x, weight = draw(shape, (filters, 3, 3, shape[3] // geometry.groups), dtype=np.float32)

    def passes():
        y = conv2d.forward(x, weight, geometry)
        dx = conv2d.input_gradient(y, weight, geometry, *shape[1:3])
        return y, conv2d.weight_gradient(x, y, geometry), dx

    same_bits(passes, 1, 2, 3)


@pytest.mark.slow
@pytest.mark.parametrize("geometry", [SAME3, Geometry((3, 3), (2, 2), (1,) * 4)])
def test_views_give_what_their_copies_give_and_nothing_is_changed(geometry):
    (x,), (weight,) = draw((2, 9, 18, 16)), draw((9, 3, 3, 8))
    view = x[:, ::-1, ::2, ::2]
    assert not view.flags.c_contiguous
    originals = x.copy(), weight.copy()
    y = conv2d.forward(view, weight, geometry)
    np.testing.assert_array_equal(y, conv2d.forward(view.copy(), weight, geometry))
    turned = y.transpose(0, 2, 1, 3).copy().transpose(0, 2, 1, 3)
    np.testing.assert_array_equal(
        conv2d.weight_gradient(view, turned, geometry), conv2d.weight_gradient(view, y, geometry)
    )
    np.testing.assert_array_equal(
        conv2d.input_gradient(turned, weight, geometry, 9, 9),
        conv2d.input_gradient(y, weight, geometry, 9, 9),
    )
    np.testing.assert_array_equal(x, originals[0])
    np.testing.assert_array_equal(weight, originals[1])


def test_the_same_call_gives_the_same_bits_and_threads_change_no_pixel():
    x, weight = draw((3, 30, 31, 12), (10, 3, 3, 12), dtype=np.float32)
    with thread_budget(2):
        first, second = (conv2d.forward(x, weight, SAME3) for _ in range(2))
        gradients = [conv2d.weight_gradient(x, first, SAME3) for _ in range(3)]
    with thread_budget(1):
        alone = conv2d.forward(x, weight, SAME3)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(first, alone, atol=1e-4)
    assert all((gradient == gradients[0]).all() for gradient in gradients)


POINT = Geometry((1, 1))


@pytest.mark.parametrize(
    ("task", "geometry", "channels", "filters", "columns", "expected"),
    [
        ("forward", SAME3, 8, 8, 20, "winograd"),
        ("forward", SAME5, 64, 32, 20, "winograd"),
        ("forward", SAME3, 7, 64, 20, "few_channels"),
        ("forward", SAME3, 64, 1, 20, "few_filters"),
        ("forward", Geometry((7, 7), (2, 2), (3,) * 4), 3, 64, 112, "few_channels"),
        ("forward", SAME3._replace(groups=32), 32, 32, 20, "depthwise"),
        ("input_gradient", SAME3, 64, 64, 20, "winograd"),
        ("weight_gradient", POINT, 64, 64, 1, "matmul"),
        ("weight_gradient", SAME3._replace(groups=32), 32, 32, 1, "depthwise"),
        *(
            (task, geometry, 64, 64, 20, "direct")
            for task, *geometries in (
                ("forward", SAME3._replace(stride=(1, 2)), SAME3._replace(kernel=(3, 5)),
                 SAME3._replace(dilation=(2, 1)), SAME3._replace(groups=2)),
                ("weight_gradient", POINT._replace(pad=(0, 1, 0, 0)),
                 POINT._replace(stride=(2, 1)), POINT._replace(kernel=(1, 2))),
            )
            for geometry in geometries
        ),
    ],
)  # fmt: skip
def test_a_table_says_which_way_serves_a_shape(
    task, geometry, channels, filters, columns, expected
):
    assert conv2d.way(task, geometry, channels, filters, columns) == expected
