"""Products over axes and determinants: gradients, also where an element is 0, PyTorch's numbers."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import ops
from daskdl.errors import ShapeError
from daskdl.tensor import Tensor
from tests.daskdl.gradients import check_gradient, normal
from tests.daskdl.peers import check_agreement


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_products(axis, keepdims):
    x = normal(3, 2, 4)
    check_gradient(lambda t: ops.prod(t, axis=axis, keepdims=keepdims), x)
    found = ops.prod(x, axis=axis, keepdims=keepdims)
    np.testing.assert_allclose(found.data, np.prod(x, axis=axis, keepdims=keepdims))


def test_the_gradient_is_exact_where_one_is_nothing(torch):
    x = np.array([[2.0, 0, 3], [0, 0, 5]])
    ours, theirs = Tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    ops.prod(ours, axis=1).backward(np.ones(2))
    theirs.prod(1).sum().backward()
    np.testing.assert_array_equal(ours.grad, theirs.grad)


def test_determinants(torch):
    x = normal(2, 3, 3)
    check_gradient(ops.det, x)
    check_agreement(torch, ops.det, torch.linalg.det, x)
    with pytest.raises(ShapeError, match=r"det: expected x of shape \(..., M, M\)"):
        ops.det(np.ones((2, 3)))
