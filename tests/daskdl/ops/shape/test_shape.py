"""Operations that move, join, cut or reduce axes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from daskdl import ops
from daskdl.tensor import Tensor
from tests.daskdl.gradients import check_gradient, normal

blocks = st.integers(1, 3)
sizes = st.integers(1, 3)


@given(shape=hnp.array_shapes(max_dims=4, max_side=4))
def test_reshape(shape):
    x = normal(*shape)
    assert ops.reshape(Tensor(x), shape=(-1,)).shape == (x.size,)
    check_gradient(lambda t: ops.reshape(t, shape=(1, -1)), x)


@pytest.mark.parametrize(
    "index", [(0,), (slice(None), -1), (slice(1, None), slice(None, None, 2)), (Ellipsis, 0)]
)
def test_take(index):
    x = normal(3, 4, 5)
    np.testing.assert_array_equal(ops.take(Tensor(x), index=index).data, x[index])
    check_gradient(lambda t: ops.take(t, index=index), x)


@given(axis=st.integers(-3, 2), lengths=st.lists(sizes, min_size=1, max_size=4))
def test_concatenate(axis, lengths):
    shapes = [tuple(n if i == axis % 3 else 2 for i in range(3)) for n in lengths]
    arrays = [normal(*shape, seed=i) for i, shape in enumerate(shapes)]
    result = ops.concatenate(*arrays, axis=axis)
    np.testing.assert_array_equal(result.data, np.concatenate(arrays, axis))
    check_gradient(lambda *tensors: ops.concatenate(*tensors, axis=axis), *arrays)


@given(block=blocks, size=st.tuples(sizes, sizes, sizes), lead=st.lists(sizes, max_size=2))
def test_folding_and_unfolding_are_inverse(block, size, lead):
    x = normal(*lead, size[0] * block, size[1] * block, size[2])
    folded = ops.space_to_depth(Tensor(x), block=block)
    assert folded.shape == (*lead, size[0], size[1], block * block * size[2])
    np.testing.assert_array_equal(ops.depth_to_space(folded, block=block).data, x)
    check_gradient(lambda t: ops.space_to_depth(t, block=block), x)
    check_gradient(lambda t: ops.depth_to_space(t, block=block), folded.data)


def test_channels_of_a_block_lie_in_rows_of_pixels():
    x = np.arange(4.0).reshape(1, 2, 2, 1)
    np.testing.assert_array_equal(ops.space_to_depth(x, block=2).data.ravel(), [0, 1, 2, 3])


@given(axes=st.permutations([0, 1, 2]), axis=st.integers(-3, 2))
def test_transpose_flip_and_repeat(axes, axis):
    x = normal(2, 3, 4)
    np.testing.assert_array_equal(ops.transpose(x, axes=tuple(axes)).data, x.transpose(axes))
    check_gradient(lambda t: ops.transpose(t, axes=tuple(axes)), x)
    np.testing.assert_array_equal(ops.flip(x, axis=axis).data, np.flip(x, axis))
    check_gradient(lambda t: ops.flip(t, axis=axis), x)
    np.testing.assert_array_equal(ops.repeat(x, times=3, axis=axis).data, np.repeat(x, 3, axis))
    check_gradient(lambda t: ops.repeat(t, times=3, axis=axis), x)


@given(axis=st.integers(-4, 3), count=st.integers(1, 3))
def test_stack(axis, count):
    arrays = [normal(2, 3, 4, seed=i) for i in range(count)]
    np.testing.assert_array_equal(ops.stack(*arrays, axis=axis).data, np.stack(arrays, axis))
    check_gradient(lambda *tensors: ops.stack(*tensors, axis=axis), *arrays)


@given(axis=st.integers(-3, 2), lengths=st.lists(sizes, min_size=1, max_size=3))
def test_split_undoes_concatenate(axis, lengths):
    arrays = [
        normal(*(n if i == axis % 3 else 2 for i in range(3)), seed=j)
        for j, n in enumerate(lengths)
    ]
    joined = np.concatenate(arrays, axis)
    for piece, array in zip(ops.split(joined, sizes=lengths, axis=axis), arrays, strict=True):
        np.testing.assert_array_equal(piece.data, array)
    check_gradient(lambda t: ops.split(t, sizes=lengths, axis=axis), joined)
    check_gradient(lambda t: ops.split(t, sizes=lengths, axis=axis)[0], joined)  # the others unused


widths = st.lists(st.tuples(st.integers(-1, 2), st.integers(-1, 2)), min_size=2, max_size=2)


@given(widths=widths, mode=st.sampled_from(["constant", "reflect", "edge"]))
def test_pad(widths, mode):
    x = normal(5, 6)
    cut = x[
        tuple(slice(max(0, -a), n - max(0, -b)) for n, (a, b) in zip(x.shape, widths, strict=True))
    ]
    settings = {"constant_values": 1.5} if mode == "constant" else {}
    expected = np.pad(cut, [(max(0, a), max(0, b)) for a, b in widths], mode=mode, **settings)
    result = ops.pad(x, widths=widths, value=1.5, mode=mode)
    np.testing.assert_array_equal(result.data, expected)
    check_gradient(lambda t: ops.pad(t, widths=widths, value=1.5, mode=mode), x)


def test_a_tuple_inside_an_index_takes_a_number_twice():
    x = Tensor(np.ones(3), requires_grad=True)
    x[((0, 0),)].backward(np.ones(2))
    assert x.grad.tolist() == [2, 0, 0]


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("length", [None, 5, 9])
@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("one_sided", [False, True])
def test_fourier_transforms(parts, length, inverse, one_sided):
    x = normal(2, 7, 3, parts)
    options = {"axis": 1, "length": length, "inverse": inverse, "one_sided": one_sided}
    check_gradient(lambda t: ops.dft(t, **options), x)
    z = x[..., 0] + 1j * x[..., 1] if parts == 2 else x[..., 0]
    result = ops.dft(x, **options).data
    if inverse and one_sided:
        n = length or 12
        np.testing.assert_allclose(result[..., 0], np.fft.irfft(z, n, 1), atol=1e-12)
        return
    right = (np.fft.ifft if inverse else np.fft.fft)(z, length or 7, 1)
    right = right[:, : (length or 7) // 2 + 1] if one_sided else right
    np.testing.assert_allclose(result, np.stack([right.real, right.imag], -1), atol=1e-12)


def test_fourier_transforms_keep_single_precision():
    x = normal(2, 7, 1).astype("f4")
    assert ops.dft(x, axis=1).dtype == np.float32


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_scatter(reduction, torch):
    x, updates = normal(4, 3), normal(2, 3, seed=1)
    ids = np.array([[0, 2, 3], [1, 0, 2]])
    index = (ids, np.arange(3))
    check_gradient(lambda a, b: ops.scatter(a, b, index=index, reduction=reduction), x, updates)
    result = ops.scatter(x, updates, index=index, reduction=reduction).data
    names = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}
    if reduction == "none":
        right = torch.tensor(x).scatter(0, torch.tensor(ids), torch.tensor(updates))
    else:
        right = torch.tensor(x).scatter_reduce(
            0, torch.tensor(ids), torch.tensor(updates), names[reduction]
        )
    np.testing.assert_allclose(result, right)


def test_a_repeated_index_is_added_as_often():
    result = ops.scatter(np.zeros(3), np.ones(4), index=(np.array([1, 1, 2, 1]),), reduction="add")
    np.testing.assert_array_equal(result.data, [0, 3, 1])


@pytest.mark.parametrize("name", ["sum", "mean"])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1), (0, 2), (2, 0), (0, 1, 2), ()])
@pytest.mark.parametrize("keepdims", [False, True])
def test_sums_and_means_are_numpys(name, axis, keepdims):
    function, x = getattr(ops, name), normal(3, 1, 4)
    check_gradient(lambda t: function(t, axis=axis, keepdims=keepdims), x)
    expected = getattr(np, name)(x, axis, keepdims=keepdims)
    result = function(x.astype("f4"), axis=axis, keepdims=keepdims)
    assert result.shape == expected.shape
    assert result.dtype == np.float32
    np.testing.assert_allclose(result.data, expected, rtol=1e-6, atol=1e-6)


def test_nothing_sums_to_zero_and_has_no_mean():
    x = np.empty((0, 3), "f4")
    assert ops.sum(x, axis=0).data.tolist() == [0, 0, 0]
    assert np.isnan(ops.mean(x).data)


def test_gradient_can_be_added_to():
    x = Tensor(np.ones((2, 3)), requires_grad=True)
    for _ in range(2):
        ops.sum(x, axis=1).backward(np.array([1.0, 2.0]))
    np.testing.assert_array_equal(x.grad, [[2, 2, 2], [4, 4, 4]])


@settings(max_examples=15)
@given(axis=st.integers(-3, 2), keepdims=st.booleans(), name=st.sampled_from(["amax", "amin"]))
def test_extremes_along_any_axis(axis, keepdims, name):
    x = normal(2, 3, 4)
    y = getattr(ops, name)(x, axis=axis, keepdims=keepdims).data
    np.testing.assert_array_equal(y, getattr(np, name)(x, axis=axis, keepdims=keepdims))
    check_gradient(lambda t: getattr(ops, name)(t, axis=axis, keepdims=keepdims), x)


def test_the_first_of_equals_gets_the_gradient():
    x = Tensor(np.array([[1.0, 2, 2], [0, 0, 0]]), requires_grad=True)
    ops.amax(x).backward([1.0, 1.0])
    np.testing.assert_array_equal(x.grad, [[0, 1, 0], [1, 0, 0]])


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_cumulative_sums_and_products(axis, exclusive, reverse):
    settings = {"axis": axis, "exclusive": exclusive, "reverse": reverse}
    for function, numpys in ((ops.cumsum, np.cumsum), (ops.cumprod, np.cumprod)):
        x = normal(3, 4, 2)
        check_gradient(lambda t, f=function: f(t, **settings), x)
        if not exclusive and not reverse:
            np.testing.assert_allclose(function(x, axis=axis).data, numpys(x, axis))


def test_exclusive_sums_start_at_0_and_products_at_1():
    x = np.array([1.0, 2, 3])
    np.testing.assert_array_equal(ops.cumsum(x, axis=0, exclusive=True).data, [0, 1, 3])
    np.testing.assert_array_equal(
        ops.cumprod(x, axis=0, exclusive=True, reverse=True).data, [6, 3, 1]
    )


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize(("k", "axis"), [(2, 0), (3, -1), (0, 1)])
def test_topk(largest, k, axis, torch):
    x = normal(3, 4, 5)
    values, places = ops.topk(x, k=k, axis=axis, largest=largest)
    right, at = torch.tensor(x).topk(k, axis, largest)
    np.testing.assert_array_equal(values.data, right)
    np.testing.assert_array_equal(places.data, at)
    if k:
        check_gradient(lambda t: ops.topk(t, k=k, axis=axis, largest=largest)[0], x)


def test_topk_takes_the_first_of_equals_first():
    x = np.array([1.0, 3, 3, 2, 3])
    np.testing.assert_array_equal(ops.topk(x, k=3)[1].data, [1, 2, 4])
    np.testing.assert_array_equal(ops.topk(-x, k=3, largest=False)[1].data, [1, 2, 4])
