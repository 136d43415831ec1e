"""The largest elements: gradients, PyTorch's numbers, and the first of equals."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import ops
from daskdl.errors import ShapeError
from tests.daskdl.gradients import check_gradient, normal


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize(("k", "axis"), [(2, 0), (3, -1), (0, 1)])
def test_values(largest, k, axis, torch):
    x = normal(3, 4, 5)
    values, places = ops.topk(x, k=k, axis=axis, largest=largest)
    right, at = torch.tensor(x).topk(k, axis, largest)
    np.testing.assert_array_equal(values.data, right)
    np.testing.assert_array_equal(places.data, at)
    if k:
        check_gradient(lambda t: ops.topk(t, k=k, axis=axis, largest=largest)[0], x)


def test_of_equals_the_first_comes_first():
    x = np.array([1.0, 3, 3, 2, 3])
    np.testing.assert_array_equal(ops.topk(x, k=3)[1].data, [1, 2, 4])
    np.testing.assert_array_equal(ops.topk(-x, k=3, largest=False)[1].data, [1, 2, 4])
    with pytest.raises(ShapeError, match="found k=6, axis=-1"):
        ops.topk(x, k=6)
