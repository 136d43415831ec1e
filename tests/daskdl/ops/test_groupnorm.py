"""Group normalisation as an operation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl import ops
from daskdl.errors import SettingsError, ShapeError
from tests.daskdl.gradients import check_gradient, normal


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


def test_what_does_not_fit_is_said():
    with pytest.raises(SettingsError, match="divide the 4 channels of x, found 3"):
        ops.group_norm(np.ones((2, 3, 4)), None, None, groups=3)
    with pytest.raises(ShapeError, match=r"group_norm: .* found \(4,\)"):
        ops.group_norm(np.ones(4), None, None, groups=2)
