"""What samples are to a network: float32, or whole numbers."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.errors import DataError
from daskdl.nn.inputs import as_inputs


@pytest.mark.parametrize(
    ("given", "taken"), [("f8", "f4"), ("f2", "f4"), (">f4", "f4"), ("u1", "u1"), ("i8", "i8")]
)
def test_floating_point_numbers_become_float32(given, taken):
    x = np.arange(6).reshape(2, 3).astype(given)
    found = as_inputs("fit", x)
    assert found.dtype == np.dtype(taken)
    np.testing.assert_array_equal(found, x)


def test_float32_is_not_copied():
    x = np.zeros((2, 3), np.float32)
    assert as_inputs("fit", x) is x


@pytest.mark.parametrize("x", [np.array([["a"]]), np.array([None]), np.array(1.0), [1j]])
def test_what_are_no_numbers_of_samples_is_refused(x):
    with pytest.raises(DataError, match=r"^fit: expected numbers \(N, \.\.\.\), found "):
        as_inputs("fit", x)
