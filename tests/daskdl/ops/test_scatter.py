"""Elements written, added, multiplied or compared into an array: gradients and numbers."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import ops
from daskdl.errors import SettingsError
from tests.daskdl.gradients import check_gradient, normal


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_reductions(reduction, torch):
    x, updates = normal(4, 3), normal(2, 3, seed=1)
    ids = np.array([[0, 2, 3], [1, 0, 2]])
    index = (ids, np.arange(3))
    check_gradient(lambda a, b: ops.scatter(a, b, index=index, reduction=reduction), x, updates)
    found = ops.scatter(x, updates, index=index, reduction=reduction).data
    names = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}
    if reduction == "none":
        right = torch.tensor(x).scatter(0, torch.tensor(ids), torch.tensor(updates))
    else:
        right = torch.tensor(x).scatter_reduce(
            0, torch.tensor(ids), torch.tensor(updates), names[reduction]
        )
    np.testing.assert_allclose(found, right)


def test_a_place_that_comes_twice_is_added_twice():
    found = ops.scatter(np.zeros(3), np.ones(4), index=(np.array([1, 1, 2, 1]),), reduction="add")
    np.testing.assert_array_equal(found.data, [0, 3, 1])
    with pytest.raises(SettingsError, match="expected reduction none, add, mul, max, min, found"):
        ops.scatter(np.zeros(3), np.ones(1), index=(np.array([1]),), reduction="mean")
