"""The operation: its dense gradient, agreement with PyTorch, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp

from daskdl import ops
from daskdl.errors import SettingsError, ShapeError
from daskdl.tensor import Tensor
from tests.daskdl.gradients import check_gradient, normal


@given(
    ids=hnp.arrays(
        np.int32,
        hnp.array_shapes(max_dims=3, max_side=4),
        elements={"min_value": 0, "max_value": 4},
    )
)
def test_gradient(ids):
    check_gradient(lambda table: ops.embedding(table, ids), normal(5, 3))


def test_agrees_with_pytorch(torch):
    rng = np.random.default_rng(0)
    table, ids = rng.random((20, 4), np.float32), rng.integers(0, 20, (6, 9))
    dy = rng.random((6, 9, 4), np.float32)
    theirs = torch.tensor(table, requires_grad=True)
    expected = torch.nn.functional.embedding(torch.from_numpy(ids), theirs)
    expected.backward(torch.from_numpy(dy))
    ours = Tensor(table, requires_grad=True)
    y = ops.embedding(ours, ids)
    y.backward(dy)
    np.testing.assert_array_equal(y.data, expected.detach().numpy())
    np.testing.assert_allclose(ours.grad, theirs.grad.numpy(), rtol=1e-6)


def test_no_ids():
    table = Tensor(np.ones((3, 2)), requires_grad=True)
    y = ops.embedding(table, np.empty((0, 4), int))
    y.backward(np.empty((0, 4, 2)))
    assert y.shape == (0, 4, 2)
    assert (table.grad == 0).all()


@pytest.mark.parametrize(
    ("table", "ids", "sentence"),
    [
        (np.ones(3), [1], r"expected a table of shape \(rows, C\), found \(3,\)"),
        (np.ones((3, 2)), [1.0], r"expected integer ids, found float64 \(1,\)"),
        (np.ones((3, 2)), [True], r"expected integer ids, found bool \(1,\)"),
        (np.ones((3, 2)), [3], "expected ids from 0 to 2, the rows of the table, found 3"),
    ],
)
def test_mistakes_are_told(table, ids, sentence):
    with pytest.raises(ShapeError, match=sentence):
        ops.embedding(table, np.array(ids))


@pytest.mark.parametrize("padding", [-1, 3])
def test_a_padding_that_no_id_can_be_is_told(padding):
    with pytest.raises(
        SettingsError, match=f"padding: expected an id from 0 to 2, found {padding}"
    ):
        ops.embedding(np.ones((3, 2)), np.array([0, 2]), padding=padding)
