"""Pooling over windows, and samples of a grid."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from daskdl import ops
from daskdl.kernels.pooling.pooling import Windows
from daskdl.tensor import Tensor
from tests.daskdl.gradients import check_gradient, layouts, normal

GLOBAL = (ops.global_max_pool2d, ops.global_avg_pool2d)


@st.composite
def poolings(draw):
    """Draw (settings of a pooling, shape of x)."""
    size = draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
    stride = draw(st.tuples(st.integers(1, 6), st.integers(1, 6)))
    pad = tuple(draw(st.integers(0, size[i // 2] - 1)) for i in range(4))
    ceil_mode = draw(st.booleans())
    shape = tuple(draw(st.integers(1, n)) for n in (2, 9, 9, 4))
    assume(min(Windows(size, stride, pad, ceil_mode).size(*shape[1:3])) > 0)
    settings = {"kernel_size": size, "stride": stride, "pad": pad, "ceil_mode": ceil_mode}
    return settings, shape


@given(case=poolings())
def test_gradient_of_maxima(case):
    settings, shape = case
    check_gradient(lambda x: ops.max_pool2d(x, **settings), normal(*shape))


@given(case=poolings(), count_include_pad=st.booleans())
def test_gradient_of_means(case, count_include_pad):
    settings, shape = case
    check_gradient(
        lambda x: ops.avg_pool2d(x, count_include_pad=count_include_pad, **settings), normal(*shape)
    )


@pytest.mark.parametrize("function", GLOBAL)
@pytest.mark.parametrize("shape", [(2, 3, 5, 4), (1, 1, 1, 1), (3, 7, 7, 33)])
def test_gradient_of_global(function, shape):
    check_gradient(function, normal(*shape))


def test_nan_and_infinity_pass_as_in_pytorch(torch):
    x = normal(2, 6, 6, 9).astype("f4")
    for i, value in enumerate((np.nan, np.inf, -np.inf)):
        x[0, i, 3 - i, i] = x[1, 2, i, 5] = value
    theirs = torch.tensor(x).permute(0, 3, 1, 2)
    settings = {"kernel_size": (3, 3), "stride": (2, 2), "pad": (1, 1, 1, 1)}
    for name in ("max_pool2d", "avg_pool2d"):
        expected = getattr(torch.nn.functional, name)(theirs, 3, 2, 1).permute(0, 2, 3, 1)
        result = getattr(ops, name)(x, **settings).data
        np.testing.assert_allclose(result, expected.numpy(), atol=1e-6)


def test_any_layout_gives_the_same():
    x = normal(2, 4, 5, 6).astype("f4")
    for function in (*GLOBAL, lambda x: ops.max_pool2d(x, kernel_size=(2, 2))):
        expected = function(x).data
        for other in layouts(x):
            np.testing.assert_array_equal(function(other).data, expected)


@pytest.mark.parametrize("shape", [(0, 4, 4, 3), (2, 4, 4, 0)])
def test_empty(shape):
    for function in (*GLOBAL, lambda x: ops.avg_pool2d(x, kernel_size=(2, 2))):
        x = Tensor(np.zeros(shape, "f4"), requires_grad=True)
        y = function(x)
        y.backward(np.zeros(y.shape, "f4"))
        assert y.shape[0] == shape[0]
        assert x.grad.shape == shape


#: axes, kernel, stride, padding, dilation, ceil
CASES = [
    ((9,), (3,), (2,), (1,), (2,), False),
    ((6, 7), (2, 3), (2, 1), (1, 0), (1, 1), False),
    ((7, 8), (2, 3), (2, 1), (1, 0), (1, 2), True),
    ((8, 7), (3, 3), (2, 2), (1, 1), (2, 1), False),
    ((5, 6, 4), (2, 2, 3), (2, 1, 1), (0, 1, 1), (1, 1, 1), True),
]


def settings(kernel, stride, pad, dilation, ceil):
    return {
        "kernel_size": kernel,
        "stride": stride,
        "pad": tuple(n for p in pad for n in (p, p)),
        "dilation": dilation,
        "ceil_mode": ceil,
    }


@pytest.mark.parametrize(("lengths", "kernel", "stride", "pad", "dilation", "ceil"), CASES)
def test_maxima(lengths, kernel, stride, pad, dilation, ceil, torch):
    x = normal(2, *lengths, 3)
    options = settings(kernel, stride, pad, dilation, ceil)
    y, places = ops.max_pool_nd(x, **options)
    theirs = getattr(torch.nn.functional, f"max_pool{len(lengths)}d")
    first = torch.tensor(x).movedim(-1, 1)
    right, at = theirs(first, kernel, stride, pad, dilation, ceil, return_indices=True)
    np.testing.assert_array_equal(y.data, right.movedim(1, -1))
    np.testing.assert_array_equal(places.data, at.movedim(1, -1))
    check_gradient(lambda t: ops.max_pool_nd(t, **options)[0], x)


@pytest.mark.parametrize(("lengths", "kernel", "stride", "pad", "dilation", "ceil"), CASES)
def test_sums(lengths, kernel, stride, pad, dilation, ceil, torch):
    x = normal(2, *lengths, 3)
    options = settings(kernel, stride, pad, dilation, ceil)
    check_gradient(lambda t: ops.sum_pool_nd(t, **options), x)
    if set(dilation) == {1} and not ceil:
        theirs = getattr(torch.nn.functional, f"avg_pool{len(lengths)}d")
        right = theirs(torch.tensor(x).movedim(-1, 1), kernel, stride, pad) * np.prod(kernel)
        np.testing.assert_allclose(
            ops.sum_pool_nd(x, **options).data, right.movedim(1, -1), atol=1e-12
        )


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align_corners", [False, True])
def test_grid_samples_of_images(mode, padding_mode, align_corners, torch):
    x, grid = normal(2, 5, 7, 3), 1.5 * np.tanh(normal(2, 4, 6, 2, seed=1))
    options = {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
    names = {"linear": "bilinear", "cubic": "bicubic", "nearest": "nearest"}
    peer = torch.tensor(x).movedim(-1, 1).requires_grad_()
    places = torch.tensor(grid, requires_grad=True)
    right = torch.nn.functional.grid_sample(peer, places, names[mode], padding_mode, align_corners)
    result = ops.grid_sample(x, grid, **options)
    np.testing.assert_allclose(result.data, right.detach().movedim(1, -1), atol=1e-9)
    check_gradient(lambda t, g: ops.grid_sample(t, g, **options), x, grid)
    moved = Tensor(grid, requires_grad=True)
    ops.grid_sample(x, moved, **options).backward(np.ones(result.shape))
    right.sum().backward()
    np.testing.assert_allclose(moved.grad, places.grad, atol=1e-9)


def test_grid_samples_of_volumes(torch):
    x, grid = normal(2, 4, 5, 3, 2), np.tanh(normal(2, 3, 2, 4, 3, seed=1))
    right = torch.nn.functional.grid_sample(
        torch.tensor(x).movedim(-1, 1), torch.tensor(grid), align_corners=False
    )
    result = ops.grid_sample(x, grid)
    np.testing.assert_allclose(result.data, right.movedim(1, -1), atol=1e-9)
    check_gradient(ops.grid_sample, x, grid)
