"""Batch normalisation as an operation: gradients, PyTorch's numbers, statistics of shards."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl import ops
from daskdl.errors import ShapeError
from daskdl.ops.norm.batchnorm import Statistics
from daskdl.tensor import Tensor
from tests.daskdl.gradients import check_gradient, normal
from tests.daskdl.layouts import layouts

SHAPES = st.lists(st.integers(1, 5), min_size=2, max_size=4).map(tuple)


@given(shape=SHAPES, relu=st.booleans(), affine=st.booleans())
def test_gradient(shape, relu, affine):
    vectors = (normal(shape[-1], seed=1), normal(shape[-1], seed=2)) if affine else (None, None)
    check_gradient(
        lambda x, w, b: ops.batch_norm(x, w, b, eps=0.1, relu=relu)[0], normal(*shape), *vectors
    )


@given(shape=SHAPES, relu=st.booleans())
def test_gradient_of_inference(shape, relu):
    mean, variance = normal(shape[-1], seed=3), normal(shape[-1], seed=4) ** 2
    check_gradient(
        lambda x, w, b: ops.batch_norm_inference(x, mean, variance, w, b, eps=0.1, relu=relu),
        normal(*shape),
        normal(shape[-1], seed=1),
        normal(shape[-1], seed=2),
    )


@pytest.mark.slow
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("inference", [False, True])
def test_gradient_with_a_residual(relu, inference):
    mean, variance = normal(3, seed=3), normal(3, seed=4) ** 2

    def normalise(x, w, b, residual):
        if inference:
            return ops.batch_norm_inference(x, mean, variance, w, b, residual, eps=0.1, relu=relu)
        return ops.batch_norm(x, w, b, residual, eps=0.1, relu=relu)[0]

    x, residual = normal(4, 5, 3), normal(4, 5, 3, seed=6)
    check_gradient(normalise, x, normal(3, seed=1), normal(3, seed=2), residual)


@pytest.mark.slow
@pytest.mark.parametrize("readers", [1, 2, 3, 4])
def test_gradients_of_all_who_read_the_end_of_a_block_are_added(readers):
    def block(x, w, b, residual):
        y = ops.batch_norm(x, w, b, residual, eps=0.1, relu=True)[0]
        total = y * 1.5
        for k in range(1, readers):
            total = total + y * (k / 3)
        return total

    x, residual = normal(4, 5, 3), normal(4, 5, 3, seed=6)
    check_gradient(block, x, normal(3, seed=1), normal(3, seed=2), residual)


def test_a_residual_of_another_shape_is_refused():
    x, row = np.zeros((2, 3), "f4"), np.zeros((1, 3), "f4")
    with pytest.raises(ShapeError, match=r"residual: expected shape \(2, 3\)"):
        ops.batch_norm(x, None, None, row)


def test_running_statistics_are_pytorchs(torch):
    x = normal(3, 4, 5, 6).astype("f4")
    mean, variance = torch.zeros(6), torch.zeros(6)
    torch.nn.functional.batch_norm(
        torch.tensor(x).permute(0, 3, 1, 2), mean, variance, training=True, momentum=1.0
    )
    _, found = ops.batch_norm(x, None, None)
    assert found.rows == 60
    np.testing.assert_allclose(found.mean, mean.numpy(), atol=1e-6)
    np.testing.assert_allclose(found.unbiased, variance.numpy(), rtol=1e-5)
    ours = ops.batch_norm_inference(
        x, found.mean.astype("f4"), found.unbiased.astype("f4"), None, None
    )
    theirs = torch.nn.functional.batch_norm(torch.tensor(x).permute(0, 3, 1, 2), mean, variance)
    np.testing.assert_allclose(ours.data, theirs.permute(0, 2, 3, 1).numpy(), atol=1e-5)


@given(sizes=st.lists(st.integers(0, 7), min_size=1, max_size=4))
def test_statistics_of_shards_merge_to_those_of_the_batch(sizes):
    shards = [normal(n, 3, seed=i) + i for i, n in enumerate(sizes)]
    merged = Statistics(np.zeros(3), np.zeros(3), 0)
    for shard in shards:
        merged = merged.merged(ops.batch_norm(shard, None, None)[1])
    whole = ops.batch_norm(np.concatenate(shards), None, None)[1]
    assert merged.rows == whole.rows == sum(sizes)
    np.testing.assert_allclose(merged.mean, whole.mean, atol=1e-12)
    np.testing.assert_allclose(merged.variance, whole.variance, atol=1e-12)


def test_nan_and_infinity_spread_over_their_channel_alone():
    x = normal(2, 3, 4, 5).astype("f4")
    x[0, 1, 2, 3], x[1, 0, 0, 1] = np.nan, np.inf
    y = ops.batch_norm(x, None, None, relu=True)[0].data
    assert np.isnan(y[..., [1, 3]]).all()
    assert np.isfinite(y[..., [0, 2, 4]]).all()


def test_inference_keeps_nan_where_it_is():
    x = normal(2, 3).astype("f4")
    x[1, 2] = np.nan
    y = ops.batch_norm_inference(x, np.zeros(3, "f4"), np.ones(3, "f4"), None, None, relu=True).data
    np.testing.assert_array_equal(np.isnan(y), np.isnan(x))


def test_any_layout_gives_the_same():
    x = normal(4, 3, 2, 6).astype("f4")
    expected = ops.batch_norm(x, None, None)[0].data
    for other in layouts(x):
        np.testing.assert_allclose(ops.batch_norm(other, None, None)[0].data, expected, atol=1e-6)


@pytest.mark.parametrize("shape", [(0, 4, 4, 3), (2, 0)])
def test_empty_batch(shape):
    x, weight = Tensor(np.zeros(shape, "f4"), requires_grad=True), np.ones(shape[-1], "f4")
    weight = Tensor(weight, requires_grad=True)
    y, statistics = ops.batch_norm(x, weight, None)
    y.backward(np.zeros(shape, "f4"))
    assert y.shape == x.grad.shape == shape
    assert not statistics.mean.any()
    np.testing.assert_array_equal(weight.grad, np.zeros(shape[-1]))


@pytest.mark.parametrize(
    ("x", "weight", "words"),
    [
        (np.zeros((2, 3), "f4"), np.zeros(4, "f4"), "weight: expected shape (3,)"),
        (np.zeros((2, 3), "f4"), np.zeros(3), "weight: expected float32 as x, found float64"),
        (np.zeros((2, 3), "i4"), None, "x: expected float32 or float64, found int32"),
        (np.zeros((), "f4"), None, "found a scalar"),
    ],
)
def test_what_does_not_fit_is_said(x, weight, words):
    with pytest.raises(ShapeError) as error:
        ops.batch_norm(x, weight, None)
    assert words in str(error.value)
