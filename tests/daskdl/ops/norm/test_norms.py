"""Norms of a sample by itself: layer, group, L2 and local response."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl import ops
from daskdl.errors import SettingsError, ShapeError
from daskdl.tensor import Tensor
from tests.daskdl.gradients import check_gradient, normal
from tests.daskdl.layouts import layouts


@given(
    shape=st.lists(st.integers(1, 6), min_size=1, max_size=4).map(tuple),
    affine=st.booleans(),
    data=st.data(),
)
def test_gradient(shape, affine, data):
    axes = data.draw(st.integers(1, len(shape)))
    vectors = [normal(*shape[-axes:], seed=i) if affine else None for i in (1, 2)]
    check_gradient(
        lambda x, w, b: ops.layer_norm(x, w, b, axes=axes, eps=0.1), normal(*shape), *vectors
    )


def test_nan_spreads_over_its_row_alone():
    x = normal(3, 5).astype("f4")
    x[1, 2] = np.nan
    y = ops.layer_norm(x, None, None).data
    np.testing.assert_array_equal(np.isnan(y).all(1), [False, True, False])
    assert np.isfinite(y[[0, 2]]).all()


def test_any_layout_gives_the_same():
    x = normal(4, 3, 6).astype("f4")
    expected = ops.layer_norm(x, None, None).data
    for other in layouts(x):
        np.testing.assert_allclose(ops.layer_norm(other, None, None).data, expected, atol=1e-6)


@pytest.mark.parametrize("shape", [(0, 3), (2, 0)])
def test_empty(shape):
    x = Tensor(np.zeros(shape, "f4"), requires_grad=True)
    weight = Tensor(np.ones(shape[-1:], "f4"), requires_grad=True)
    y = ops.layer_norm(x, weight, None)
    y.backward(np.zeros(shape, "f4"))
    assert y.shape == x.grad.shape == shape
    np.testing.assert_array_equal(weight.grad, np.zeros(shape[-1]))


def test_what_does_not_fit_is_said():
    with pytest.raises(ShapeError, match=r"layer_norm: weight: expected shape \(3,\)"):
        ops.layer_norm(np.zeros((2, 3)), np.zeros(4), None)
    with pytest.raises(SettingsError, match=r"axes: expected 1 to 2 .* found 3"):
        ops.layer_norm(np.zeros((2, 3)), None, None, axes=3)


@pytest.mark.slow
@settings(max_examples=10)
@given(groups=st.sampled_from([1, 2, 4]), pixels=st.lists(st.integers(2, 3), max_size=2))
def test_gradient_and_moments(groups, pixels):
    x = 3 + 2 * normal(2, 5, *pixels, 8)
    check_gradient(
        lambda *a: ops.group_norm(*a, groups=groups), x, normal(8, seed=1), normal(8, seed=2)
    )
    y = ops.group_norm(x, None, None, groups=groups, eps=0).data
    y = y.reshape(2, -1, groups, 8 // groups)
    np.testing.assert_allclose(y.mean((1, 3)), 0, atol=1e-9)
    np.testing.assert_allclose(y.std((1, 3)), 1, atol=1e-9)


def test_what_does_not_fit_is_said_groupnorm():
    with pytest.raises(SettingsError, match="divide the 4 channels of x, found 3"):
        ops.group_norm(np.ones((2, 3, 4)), None, None, groups=3)
    with pytest.raises(ShapeError, match=r"group_norm: .* found \(4,\)"):
        ops.group_norm(np.ones(4), None, None, groups=2)


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


without_weights = pytest.mark.parametrize("norm", [ops.normalize, ops.local_response_norm])


@without_weights
def test_any_layout_gives_the_same_norm(norm):
    x = normal(4, 3, 6).astype("f4")
    expected = norm(x).data
    for other in layouts(x):
        np.testing.assert_allclose(norm(other).data, expected, atol=1e-6)


@without_weights
@pytest.mark.parametrize("shape", [(0, 3), (2, 0)])
def test_norms_of_nothing_are_empty(norm, shape):
    x = Tensor(np.zeros(shape, "f4"), requires_grad=True)
    y = norm(x)
    y.backward(np.zeros(shape, "f4"))
    assert y.shape == x.grad.shape == shape


def test_whole_numbers_are_refused():
    with pytest.raises(ShapeError, match="normalize: x: expected float32 or float64, found int64"):
        ops.normalize(np.zeros((2, 3), "i8"))


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


def test_nan_and_infinity_reach_their_window_alone(torch):
    x = normal(2, 2, 3, 9).astype("f4")
    x[0, 1, 2, 3], x[1, 0, 0, 7] = np.nan, np.inf
    theirs = torch.nn.functional.local_response_norm(torch.tensor(x).permute(0, 3, 1, 2), 3)
    np.testing.assert_allclose(
        ops.local_response_norm(x, size=3).data, theirs.permute(0, 2, 3, 1).numpy(), atol=1e-6
    )


def test_what_does_not_fit_is_said_lrn():
    with pytest.raises(ShapeError, match=r"local_response_norm: x: .* found int64"):
        ops.local_response_norm(np.zeros((2, 3), "i8"))
    with pytest.raises(SettingsError, match="size: expected a whole number of at least 1, found 0"):
        ops.local_response_norm(np.zeros((2, 3)), size=0)
