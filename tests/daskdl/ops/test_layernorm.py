"""Layer normalisation: gradients, PyTorch's numbers, any layout, empty and odd sizes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl import ops
from daskdl.errors import SettingsError, ShapeError
from daskdl.tensor import Tensor
from tests.daskdl.gradients import check_gradient, normal
from tests.daskdl.layouts import layouts
from tests.daskdl.peers import check_agreement


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


@pytest.mark.parametrize(
    ("shape", "axes"), [((70, 33), 1), ((7, 3300), 1), ((5, 4, 6), 2), ((2, 3, 64), 1)]
)
def test_agrees_with_pytorch(shape, axes, torch):
    last = shape[-axes:]
    check_agreement(
        torch,
        lambda x, w, b: ops.layer_norm(x, w, b, axes=axes),
        lambda x, w, b: torch.nn.functional.layer_norm(x, last, w, b),
        normal(*shape),
        normal(*last, seed=1),
        normal(*last, seed=2),
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
