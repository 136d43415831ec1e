"""ClipValue against PyTorch's function."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from daskdl.optim import SGD, ClipValue
from daskdl.rows import Rows
from tests.daskdl.optim import runs


@given(value=st.floats(0, 3, width=32))
def test_it_is_pytorchs(value, torch):
    g = runs.gradients(runs.start(), 0)
    parameter = torch.nn.Parameter(torch.zeros(runs.SIZE))
    parameter.grad = torch.tensor(g)
    torch.nn.utils.clip_grad_value_([parameter], value)
    method = ClipValue(SGD(1.0), value)
    new, _ = method.update(np.zeros_like(g), g, {}, 0)
    np.testing.assert_array_equal(new, -parameter.grad.numpy())


@runs.few
@given(points=runs.cuts)
def test_slices_have_the_bits_of_the_whole(points):
    runs.check_pure(ClipValue(SGD(0.1, 0.9), 0.5))
    runs.check_slices(ClipValue(SGD(0.1, 0.9), 0.5), points)


def test_a_negative_bound_is_refused():
    with pytest.raises(SettingsError, match="ClipValue: expected 0 <= value < inf, found -1"):
        ClipValue(SGD(), -1)


def test_rows_are_clipped_too():
    table = np.zeros((3, 2), np.float32)
    rows = Rows(np.array([2]), np.array([[-9, 1]], np.float32), (3, 2))
    ClipValue(SGD(1.0), 1.5).update_rows("table", table, rows, {}, 0, 0.5)
    np.testing.assert_array_equal(table, [[0, 0], [0, 0], [1.5, -0.5]])
