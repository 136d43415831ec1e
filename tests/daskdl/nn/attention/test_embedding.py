"""Embedding layers against PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl import nn, ops
from tests.daskdl.nn.like_pytorch import check_like_pytorch


@settings(max_examples=10)
@given(rows=st.integers(2, 9), features=st.integers(1, 5), padded=st.booleans())
def test_agrees_with_pytorch(rows, features, padded, torch):
    index = rows - 1 if padded else None
    ours, theirs = nn.Embedding(rows, features, index), torch.nn.Embedding(rows, features, index)
    ids = np.random.default_rng(rows).integers(0, rows, (3, 4))
    if padded:  # PyTorch reads the padding's row as loaded, ours is zeros
        ids[ids == index] = 0
    check_like_pytorch(torch, ours, theirs, ids, channels=False)


def test_padding_is_zero_and_learns_nothing():
    layer = nn.Embedding(4, 3, padding_index=1, seed=0)
    assert not layer.weight.data[1].any()
    layer.weight.data[:] = 1
    y = layer(np.array([1, 2]))
    np.testing.assert_array_equal(y.data, [[0, 0, 0], [1, 1, 1]])
    y.backward(np.ones((2, 3), "f4"))
    np.testing.assert_array_equal(layer.weight.grad.any(1), [False, False, True, False])


def test_long_rows_are_shortened_as_pytorchs(torch):
    ours, theirs = nn.Embedding(5, 3, max_norm=1.0, seed=0), torch.nn.Embedding(5, 3, max_norm=1.0)
    ours.weight.data[0] = 0.01
    before, ids = ours.weight.data.copy(), np.arange(5)
    theirs.weight.data = torch.tensor(before)
    np.testing.assert_allclose(ours(ids).data, theirs(torch.tensor(ids)).detach(), atol=1e-6)
    np.testing.assert_array_equal(ours.weight.data, before)  # which others may be reading


@settings(max_examples=10)
@given(mode=st.sampled_from(["sum", "mean"]), padded=st.booleans(), weighted=st.booleans())
def test_bags_agree_with_pytorch(mode, padded, weighted, torch):
    rng = np.random.default_rng(3)
    ids = rng.integers(0, 6, (4, 3))
    ids[0] = 5
    index = 5 if padded else None
    ours = nn.EmbeddingBag(6, 4, index, mode=mode, seed=0)
    theirs = torch.nn.EmbeddingBag(6, 4, mode=mode, padding_idx=index)
    theirs.weight.data = torch.tensor(ours.weight.data.copy())
    weights = rng.random((4, 3)).astype("f4") if weighted and mode == "sum" else None
    right = theirs(
        torch.tensor(ids), per_sample_weights=None if weights is None else torch.tensor(weights)
    )
    result = ours(ids, weights)
    np.testing.assert_allclose(result.data, right.detach(), atol=1e-6)
    dy = rng.normal(size=(4, 4)).astype("f4")
    result.backward(dy)
    right.backward(torch.tensor(dy))
    np.testing.assert_allclose(ours.weight.grad, theirs.weight.grad, atol=1e-6)


def test_weighted_bags_by_hand():
    """Means and roots as TensorFlow's embedding_lookup_sparse has them."""
    ids, weights = np.array([[0, 1]]), np.array([[3.0, 4.0]])
    for mode, divisor in (("sum", 1), ("mean", 7), ("sqrtn", 5)):
        layer = nn.EmbeddingBag(2, 3, mode=mode, seed=0)
        expected = weights @ layer.weight.data / divisor
        np.testing.assert_allclose(layer(ids, weights).data, expected, rtol=1e-5)
    empty = nn.EmbeddingBag(2, 3, padding_index=0, mode="mean")
    np.testing.assert_array_equal(empty(np.zeros((1, 2), int)).data, np.zeros((1, 3)))


def small_table(sparse):
    return nn.Embedding(9, 3, seed=0, sparse=sparse)


@pytest.mark.parametrize("tied", [False, True])
def test_rows_are_the_dense_gradient(tied):
    ids = np.array([[1, 4], [4, 8]])
    dense, rows = small_table(False), small_table(True)
    for _ in range(2):  # gradients add up
        for layer in (dense, rows):
            y = layer(ids)
            if tied:  # a gradient of the whole table, and one of its rows
                y = ops.matmul(ops.reshape(y, shape=(4, 3)), layer.weight.transpose())
            y.backward(np.ones(y.shape, np.float32))
    np.testing.assert_array_equal(rows.weight.grad.dense(), dense.weight.grad)
    if not tied:
        assert rows.weight.grad.ids.tolist() == [1, 4, 8]
    rows.zero_grad()
    assert rows.weight.grad is None


def test_frozen_tables_have_no_rows():
    layer = small_table(True).freeze()
    y = layer(np.array([1])) * nn.Parameter(np.ones(3))
    y.backward(np.ones((1, 3), np.float32))
    assert layer.weight.grad is None


def test_tables_are_saved_like_other_parameters(tmp_path):
    model = nn.Sequential(nn.EmbeddingBag(9, 3, seed=0, sparse=True), nn.Linear(3, 2, seed=1))
    nn.save(model, tmp_path / "m.safetensors")
    loaded = nn.load(tmp_path / "m.safetensors")
    assert list(loaded.tables) == ["layers.0.weight"]
    for name, array in model.state_dict().items():
        np.testing.assert_array_equal(loaded.state_dict()[name], array)
