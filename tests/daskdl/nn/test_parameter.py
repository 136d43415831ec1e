"""Parameters and buffers: kept as copies in float32, through pickles, and what they refuse."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import ShapeError


@pytest.mark.parametrize("kind", [nn.Parameter, nn.Buffer])
def test_numbers_are_copied_as_float32(kind):
    given = np.arange(3.0)
    held = kind(given)
    given[:] = 9
    assert held.dtype == np.float32
    np.testing.assert_array_equal(held.data, [0, 1, 2])
    assert held.requires_grad == (kind is nn.Parameter)


@pytest.mark.parametrize(
    "made",
    [
        nn.Parameter([[1.0, 2.0]]),
        nn.Parameter([[1.0, 2.0]], requires_grad=False),
        nn.Parameter([[1.0, 2.0]], sparse=True),
        nn.Buffer([1.0, 2.0]),
    ],
)
def test_pickles_keep_what_it_is(made):
    same = pickle.loads(pickle.dumps(made))
    assert type(same) is type(made)
    assert same.data.tolist() == made.data.tolist()
    assert (same.requires_grad, same.keeps_rows) == (made.requires_grad, made.keeps_rows)


def test_what_is_no_table_cannot_be_trained_by_rows():
    with pytest.raises(ShapeError, match=r"a table \(N, C\) with sparse=True, found shape \(3,\)"):
        nn.Parameter(np.zeros(3), sparse=True)
