"""Layers that pool regions hand their settings to the operations."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import nn, ops
from daskdl.errors import ShapeError
from tests.daskdl.gradients import normal

X = normal(2, 6, 7, 3).astype("f4")
REGIONS = np.array([[0, 0, 0, 8, 9], [1, 2, 3, 7, 8]], "f4")


def test_settings_reach_the_operation():
    settings = {"size": (2, 3), "scale": 0.5}
    expected = ops.roi_pool(X, REGIONS, **settings).data
    np.testing.assert_array_equal(nn.RoIPool((2, 3), 0.5)(X, REGIONS).data, expected)
    np.testing.assert_array_equal(nn.RoIPool((2, 3), 0.5)((X, REGIONS)).data, expected)
    expected = ops.roi_align(X, REGIONS, samples=3, aligned=True, **settings).data
    layer = nn.RoIAlign((2, 3), 0.5, samples=3, aligned=True)
    np.testing.assert_array_equal(layer(X, REGIONS).data, expected)


def test_other_inputs_are_refused():
    with pytest.raises(ShapeError, match=r"RoIPool: expected .* \(N, H, W, C\), found \(6, 7, 3\)"):
        nn.RoIPool(2)(X[0], REGIONS)
