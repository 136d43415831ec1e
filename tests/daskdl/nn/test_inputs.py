"""Networks take samples as float32, and integers as they are."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.data import Ragged
from daskdl.nn.inputs import as_inputs


@pytest.mark.parametrize(
    ("given", "taken"), [("f8", "f4"), ("f2", "f4"), (">f4", "f4"), ("u1", "u1"), ("i8", "i8")]
)
def test_floating_point_numbers_become_float32(given, taken):
    x = np.arange(6).reshape(2, 3).astype(given)
    found = as_inputs(x)
    assert found.dtype == np.dtype(taken)
    np.testing.assert_array_equal(found, x)


@pytest.mark.parametrize(
    "x", [np.zeros((2, 3), np.float32), np.array([["a"]]), Ragged.of([[0.5], [1.0, 2.0]])]
)
def test_all_else_is_what_it_was(x):
    assert as_inputs(x) is x
