"""Products with packed weights are numpy's, of any size and into ranges of columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.kernels.products.microkernel import COLUMNS, DEPTH, FEW_ROWS, ROWS
from daskdl.kernels.products.packed import _first, _large, packed, product, room_for
from daskdl.kernels.runtime.jit import jit


@jit
def multiply(a, panels, c, add):
    product(a, panels, c, add, room_for(a.shape[0], a), a[:0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(
    add=st.booleans(),
    rows=st.integers(0, 3 * ROWS + 2),
    depth=st.sampled_from([1, 3, DEPTH, DEPTH + 5]),
    width=st.sampled_from([1, COLUMNS - 1, COLUMNS, 2 * COLUMNS + 3]),
)
def test_product_is_numpys(dtype, rows, depth, width, add):
    rng = np.random.default_rng([rows, depth, width])
    a, b, c = (
        rng.normal(size=s).astype(dtype) for s in ((rows, depth), (depth, width), (rows, width))
    )
    expected = (c.astype(float) if add else 0) + a.astype(float) @ b
    multiply(a, packed(b), c, add)
    np.testing.assert_allclose(c, expected, atol=300 * np.finfo(dtype).eps)


def test_groups_leave_one_row_idle_at_most():
    for rows in range(FEW_ROWS, 100):
        groups, large = -(-rows // ROWS), _large(rows)
        assert rows <= _first(groups, large) <= rows + 1


def test_other_columns_are_left_alone():
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(7, 9)), rng.normal(size=(4, 20)), rng.normal(size=(7, 25))
    expected = c.copy()
    expected[:, 2:22] += a[:, 3:7] @ b
    multiply(a[:, 3:7], packed(b), c[:, 2:22], True)
    np.testing.assert_allclose(c, expected, atol=1e-12)


def test_weights_of_any_layout_are_packed():
    weight = np.arange(6 * 20.0).reshape(20, 6)
    weight.flags.writeable = False
    np.testing.assert_array_equal(packed(weight.T), packed(np.ascontiguousarray(weight.T)))
