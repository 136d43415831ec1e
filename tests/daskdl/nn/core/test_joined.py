"""The vectors of a module: looked for once, found again when something changed, let go with it."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from daskdl import nn


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 2, seed=0), nn.BatchNorm(2), nn.Embedding(5, 2, sparse=True))


def test_a_module_that_stays_the_same_is_not_looked_through_again(monkeypatch):
    model = network()
    vector, gradient, tables = model.vector, model.flat_grad, model.tables

    def refuse(self: nn.Module) -> None:
        raise AssertionError("looked for the tensors again")

    monkeypatch.setattr(nn.Module, "held", refuse)
    assert model.vector is vector
    assert model.flat_grad is gradient
    assert model.tables is tables
    model.zero_grad()
    model.layers.append(nn.Linear(2, 2))
    with pytest.raises(AssertionError, match="again"):
        model.zero_grad()


@pytest.mark.parametrize("change", [
    lambda model: model.layers.reverse(),
    lambda model: setattr(model[0], "bias", nn.Parameter(np.ones(2))),
    lambda model: setattr(model[0], "more", nn.Parameter(np.ones(3))),
    lambda model: delattr(model[1], "bias"),
    lambda model: setattr(model[1].running_mean, "data", np.full(2, 7, np.float32)),
])  # fmt: skip
def test_what_changes_a_module_is_seen(change):
    model = network()
    assert model.vector.size == 8 + 4 + 4
    change(model)
    tensors = [p for p in model.parameters() if not p.sparse]
    tensors += [buffer for _, buffer in model.named_buffers()]
    expected = np.concatenate([t.data.ravel() for t in tensors])
    np.testing.assert_array_equal(model.vector, expected)
    assert all(np.shares_memory(t.data, model.vector) for t in tensors)


def test_what_is_put_in_the_place_of_an_array_is_taken_into_the_vector():
    model = network()
    vector, mean, weight = model.vector, model[1].running_mean, model[0].weight
    mean.data = mean.data + np.float32(7)
    weight.data = np.full((2, 3), 5.0)  # of another dtype
    assert model.vector is vector
    np.testing.assert_array_equal(model.flat_buffers[:2], 7)
    np.testing.assert_array_equal(model.flat[:6], 5)
    assert weight.data.dtype == np.float32
    assert all(np.shares_memory(t.data, vector) for t in (mean, weight))


def test_other_attributes_leave_the_vector_where_it_is():
    model = network()
    vector = model.vector
    model.eval()
    model[1].momentum = 0.5
    assert model.vector is vector


def test_a_module_goes_with_its_last_reference():
    gc.disable()
    try:
        model = network()
        model.zero_grad()
        gone = weakref.ref(model)
        del model
        assert gone() is None
    finally:
        gc.enable()
