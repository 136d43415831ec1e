"""Convolution over sequences: gradients, agreement with PyTorch, errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl import ops
from daskdl.errors import ShapeError
from daskdl.tensor import Tensor
from tests.daskdl.gradients import check_gradient, normal

small = st.integers(1, 3)


@settings(max_examples=30)
@given(small, small, small, small, st.integers(0, 3), st.integers(0, 3), st.booleans())
def test_gradient(kernel, stride, dilation, groups, before, behind, with_bias):
    filters = 2 * groups
    check_gradient(
        lambda x, w, b: ops.conv1d(
            x, w, b, stride=stride, pad=(before, behind), dilation=dilation, groups=groups
        ),
        normal(2, 9, 3 * groups),
        normal(filters, kernel, 3, seed=1),
        normal(filters, seed=2) if with_bias else None,
    )


@pytest.mark.parametrize(
    ("kernel", "stride", "pad", "dilation", "groups"),
    [(1, 1, 0, 1, 1), (5, 1, 2, 1, 1), (3, 2, 1, 1, 1), (3, 1, 4, 4, 1), (3, 2, 1, 1, 4)],
)
def test_agrees_with_pytorch(kernel, stride, pad, dilation, groups, torch):
    arrays = normal(3, 30, 20), normal(24, kernel, 20 // groups, seed=1) / 9, normal(24, seed=2)
    arrays = [a.astype("f4") for a in arrays]
    theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
    expected = torch.nn.functional.conv1d(
        theirs[0].mT, theirs[1].mT, theirs[2], stride, pad, dilation, groups
    ).mT
    expected.square().sum().backward()
    ours = [Tensor(a, requires_grad=True) for a in arrays]
    result = ops.conv1d(*ours, stride=stride, pad=(pad, pad), dilation=dilation, groups=groups)
    result.backward(2 * result.data)
    np.testing.assert_allclose(result.data, expected.detach().numpy(), atol=1e-4)
    for mine, other in zip(ours, theirs, strict=True):
        right = other.grad.numpy()
        np.testing.assert_allclose(mine.grad, right, rtol=0, atol=2e-5 * np.abs(right).max())


def test_causal_results_see_no_later_step():
    x, w = normal(1, 8, 2), normal(3, 3, 2, seed=1)
    y = ops.conv1d(x, w, None, pad=(4, 0), dilation=2).data
    x[0, 5] += 1
    changed = ops.conv1d(x, w, None, pad=(4, 0), dilation=2).data != y
    np.testing.assert_array_equal(changed.any((0, 2)), [False] * 5 + [True, False, True])


def test_what_does_not_fit_is_named():
    with pytest.raises(ShapeError, match=r"conv1d: expected x of shape .* found \(2, 3, 4, 5\)"):
        ops.conv1d(normal(2, 3, 4, 5), normal(1, 3, 5), None)
    with pytest.raises(ShapeError, match=r"conv1d: expected an image of at least \(1, 5\)"):
        ops.conv1d(normal(2, 4, 5), normal(1, 5, 5), None)
