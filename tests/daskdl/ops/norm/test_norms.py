"""Norms over batches and within a sample: layer, group, L2 and local response."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl import ops
from daskdl.ops.norm.batchnorm import Statistics
from daskdl.tensor import Tensor
from tests.daskdl.gradients import check_gradient, layouts, normal

SHAPES = st.lists(st.integers(1, 5), min_size=2, max_size=4).map(tuple)


@given(shape=SHAPES, relu=st.booleans(), affine=st.booleans())
def test_gradient_of_batches(shape, relu, affine):
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
def test_gradients_of_all_readers_of_a_block_are_added(readers):
    def block(x, w, b, residual):
        y = ops.batch_norm(x, w, b, residual, eps=0.1, relu=True)[0]
        total = y * 1.5
        for k in range(1, readers):
            total = total + y * (k / 3)
        return total

    x, residual = normal(4, 5, 3), normal(4, 5, 3, seed=6)
    check_gradient(block, x, normal(3, seed=1), normal(3, seed=2), residual)


def test_running_statistics_are_pytorchs(torch):
    x = normal(3, 4, 5, 6).astype("f4")
    mean, variance = torch.zeros(6), torch.zeros(6)
    torch.nn.functional.batch_norm(
        torch.tensor(x).permute(0, 3, 1, 2), mean, variance, training=True, momentum=1.0
    )
    _, statistics = ops.batch_norm(x, None, None)
    assert statistics.rows == 60
    np.testing.assert_allclose(statistics.mean, mean.numpy(), atol=1e-6)
    np.testing.assert_allclose(statistics.unbiased, variance.numpy(), rtol=1e-5)
    ours = ops.batch_norm_inference(
        x, statistics.mean.astype("f4"), statistics.unbiased.astype("f4"), None, None
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


def test_inference_keeps_nan_where_it_is():
    x = normal(2, 3).astype("f4")
    x[1, 2] = np.nan
    y = ops.batch_norm_inference(x, np.zeros(3, "f4"), np.ones(3, "f4"), None, None, relu=True).data
    np.testing.assert_array_equal(np.isnan(y), np.isnan(x))


@given(
    shape=st.lists(st.integers(1, 6), min_size=1, max_size=4).map(tuple),
    affine=st.booleans(),
    data=st.data(),
)
def test_gradient_of_layer_norm(shape, affine, data):
    axes = data.draw(st.integers(1, len(shape)))
    vectors = [normal(*shape[-axes:], seed=i) if affine else None for i in (1, 2)]
    check_gradient(
        lambda x, w, b: ops.layer_norm(x, w, b, axes=axes, eps=0.1), normal(*shape), *vectors
    )


@pytest.mark.slow
@settings(max_examples=10)
@given(groups=st.sampled_from([1, 2, 4]), pixels=st.lists(st.integers(2, 3), max_size=2))
def test_gradient_and_moments_of_group_norm(groups, pixels):
    x = 3 + 2 * normal(2, 5, *pixels, 8)
    check_gradient(
        lambda *a: ops.group_norm(*a, groups=groups), x, normal(8, seed=1), normal(8, seed=2)
    )
    y = ops.group_norm(x, None, None, groups=groups, eps=0).data
    y = y.reshape(2, -1, groups, 8 // groups)
    np.testing.assert_allclose(y.mean((1, 3)), 0, atol=1e-9)
    np.testing.assert_allclose(y.std((1, 3)), 1, atol=1e-9)


@given(
    shape=st.lists(st.integers(1, 6), min_size=1, max_size=4).map(tuple),
    eps=st.sampled_from([1e-12, 2.0]),  # about half of the vectors are shorter than the second
)
def test_gradient_l2norm(shape, eps):
    check_gradient(lambda x: ops.normalize(x, eps=eps), normal(*shape))


def test_zero_stays_zero_and_nan_stays_in_its_row(torch):
    x = normal(4, 3).astype("f4")
    x[1], x[2, 0] = 0, np.nan
    expected = torch.nn.functional.normalize(torch.tensor(x), dim=-1)
    np.testing.assert_allclose(ops.normalize(x).data, expected.numpy(), atol=1e-6)


@pytest.mark.slow
@given(
    shape=st.lists(st.integers(1, 7), min_size=1, max_size=4).map(tuple),
    size=st.integers(1, 8),
    beta=st.sampled_from([0.75, 0.5, 1.3]),
)
def test_gradient_lrn(shape, size, beta):
    check_gradient(
        lambda x: ops.local_response_norm(x, size=size, alpha=0.5, beta=beta, k=1.5), normal(*shape)
    )


def test_nan_and_infinity_spread_over_their_window_alone(torch):
    x = normal(2, 2, 3, 9).astype("f4")
    x[0, 1, 2, 3], x[1, 0, 0, 7] = np.nan, np.inf
    theirs = torch.nn.functional.local_response_norm(torch.tensor(x).permute(0, 3, 1, 2), 3)
    np.testing.assert_allclose(
        ops.local_response_norm(x, size=3).data, theirs.permute(0, 2, 3, 1).numpy(), atol=1e-6
    )


NORMS = {
    "layer_norm": ops.layer_norm,
    "batch_norm": lambda *a: ops.batch_norm(*a)[0],
    "group_norm": lambda *a: ops.group_norm(*a, groups=1),
    "normalize": lambda x, *_: ops.normalize(x),
    "local_response_norm": lambda x, *_: ops.local_response_norm(x),
}
every_norm = pytest.mark.parametrize("name", NORMS)


@every_norm
def test_any_layout_gives_the_same(name):
    x = normal(4, 3, 6).astype("f4")
    expected = NORMS[name](x, None, None).data
    for other in layouts(x):
        actual = NORMS[name](other, None, None).data
        np.testing.assert_allclose(actual, expected, atol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize(
    ("name", "axes"), [("layer_norm", 2), ("batch_norm", (0, 1)), ("group_norm", (1, 2))]
)
def test_nan_and_infinity_spread_over_their_group_alone(name, axes, bad):
    x = normal(3, 5, 6).astype("f4")
    x[1, 2, 4] = bad
    lost = ~np.isfinite(x).all(axes, keepdims=True)
    y = NORMS[name](x, None, None).data
    np.testing.assert_array_equal(np.isnan(y), np.broadcast_to(lost, x.shape))


@every_norm
@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (0, 4, 4, 3)])
def test_norms_of_nothing_are_empty(name, shape):
    if name == "group_norm" and len(shape) == 2:
        pytest.skip("has no images")
    x = Tensor(np.zeros(shape, "f4"), requires_grad=True)
    weight = Tensor(np.ones(shape[-1], "f4"), requires_grad=True)
    y = NORMS[name](x, weight, None)
    y.backward(np.zeros(shape, "f4"))
    assert y.shape == x.grad.shape == shape
    assert weight.grad is None or not weight.grad.any()
