"""Modules: names, the flat vector and its views, copies and refusals."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from daskdl import nn, ops
from daskdl.errors import ShapeError
from tests.daskdl.gradients import normal


class Tower(nn.Module):
    """Two branches in a list, one by attribute, and a parameter of its own."""

    def __init__(self):
        self.branches = [nn.Linear(3, 2, seed=0), nn.Linear(3, 2, seed=1)]
        self.head = nn.Sequential(nn.Linear(2, 1, seed=2))
        self.scale = nn.Parameter([2.0])

    def forward(self, x, *, shift=0.0):
        y = self.branches[0](x) + self.branches[1](x)
        return self.head(y) * self.scale + shift


class Tied(nn.Module):
    """One layer under two names."""

    def __init__(self):
        self.first = nn.Linear(2, 2, seed=0)
        self.second = self.first

    def forward(self, x):
        return self.second(self.first(x))


NAMES = [
    "scale",
    "branches.0.weight",
    "branches.0.bias",
    "branches.1.weight",
    "branches.1.bias",
    "head.layers.0.weight",
    "head.layers.0.bias",
]


def loss_of(model, rows=4):
    y = model(normal(rows, 3).astype("f4"))
    return ops.mean(y * y)


def test_names_are_dotted_and_in_the_order_of_flat():
    model = Tower()
    assert [name for name, _ in model.named_parameters()] == NAMES
    joined = np.concatenate([p.data.ravel() for p in model.parameters()])
    np.testing.assert_array_equal(model.flat, joined)
    names = ["", "branches.0", "branches.1", "head", "head.layers.0"]
    assert [name for name, _ in model.modules()] == names


def test_parameters_are_views_of_flat():
    model = Tower()
    assert model.vector is model.vector
    assert np.shares_memory(model.flat, model.vector)
    model.flat[:] = 7
    assert all((p.data == 7).all() for p in model.parameters())
    model.scale.data[:] = 3
    assert model.flat[0] == 3


def test_gradients_are_views_of_flat_grad():
    model = Tower()
    model.zero_grad()
    loss_of(model).backward()
    joined = np.concatenate([p.grad.ravel() for p in model.parameters()])
    np.testing.assert_array_equal(model.flat_grad, joined)
    assert np.abs(joined).max() > 0
    model.zero_grad()
    assert not any(p.grad.any() for p in model.parameters())


def test_gradients_computed_before_flat_is_read_are_kept():
    early, late = Tower(), Tower()
    late.zero_grad()
    for model in (early, late):
        loss_of(model).backward()
    np.testing.assert_array_equal(early.flat_grad, late.flat_grad)
    assert early.flat_grad.any()


def test_flat_of_a_child_takes_over_and_the_parent_finds_its_views_again():
    model = Tower()
    model.zero_grad()
    loss_of(model).backward()
    values, gradients = model.flat.copy(), model.flat_grad.copy()
    child = model.branches[1]
    child.flat[:] = 5
    assert child.flat_grad.any()
    np.testing.assert_array_equal(model.flat_grad, gradients)
    np.testing.assert_array_equal(model.flat[9:17], 5)
    np.testing.assert_array_equal(
        np.delete(model.flat, range(9, 17)), np.delete(values, range(9, 17))
    )
    child.load_flat(np.ones(8, np.float32))
    assert (model.branches[1].weight.data == 1).all()
    assert (model.flat[9:17] == 1).all()


def test_a_shared_layer_is_listed_once():
    model = Tied()
    assert [name for name, _ in model.named_parameters()] == ["first.weight", "first.bias"]
    assert model.flat.size == 6
    x = normal(3, 2).astype("f4")
    model.zero_grad()
    ops.mean(model(x)).backward()
    again = pickle.loads(pickle.dumps(model))
    assert again.first.weight is again.second.weight
    np.testing.assert_array_equal(again(x).data, model(x).data)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_share_nothing_and_lie_in_one_vector_again(duplicate):
    model = Tower()
    values = model.flat.copy()
    twin = duplicate(model)
    np.testing.assert_array_equal(twin.flat, values)
    twin.flat[:] = 0
    assert not any(p.data.any() for p in twin.parameters())
    np.testing.assert_array_equal(model.flat, values)
    norm = nn.BatchNorm(2)
    norm.flat_buffers[:] = 3
    other = duplicate(norm)
    other.running_mean.data += 1
    np.testing.assert_array_equal(other.flat_buffers, [4, 4, 3, 3])
    np.testing.assert_array_equal(norm.flat_buffers, [3, 3, 3, 3])


def test_pickle_holds_the_weights_once():
    model = nn.Sequential(nn.Linear(100, 100))
    loss = ops.mean(model(np.ones((1, 100), np.float32)))
    loss.backward()
    assert model.flat_grad.any()
    assert len(pickle.dumps(model)) < 4 * 10100 + 2000


def test_load_flat_copies():
    model, vector = Tower(), np.arange(20, dtype=np.float32)
    whole = model.vector
    model.load_flat(vector)
    assert model.vector is whole
    vector[:] = -1
    np.testing.assert_array_equal(model.flat, np.arange(20))


def test_load_flat_of_another_length_is_refused():
    with pytest.raises(ShapeError, match=r"a vector of 20 parameters, found shape \(19,\)"):
        Tower().load_flat(np.zeros(19, np.float32))


def test_load_state_dict_says_all_that_is_wrong_and_changes_nothing():
    model = Tower()
    before, state = model.flat.copy(), model.state_dict()
    state["scale"] = np.zeros(2)
    state["tail"] = state.pop("head.layers.0.bias")
    state["branches.0.bias"][:] = 99
    with pytest.raises(ShapeError) as refused:
        model.load_state_dict(state)
    for part in (
        "Tower",
        "head.layers.0.bias is missing",
        "tail is not a parameter",
        r"scale has shape (2,), expected (1,)",
    ):
        assert part in str(refused.value)
    np.testing.assert_array_equal(model.flat, before)


def test_train_and_eval_reach_every_module():
    model = Tower()
    assert all(m.training for _, m in model.modules())
    assert model.eval() is model
    assert not any(m.training for _, m in model.modules())
    assert all(m.training for _, m in model.train().modules())


def test_settings_reach_forward():
    x = np.zeros((1, 3), np.float32)
    np.testing.assert_allclose(Tower()(x, shift=1.0).data, Tower()(x).data + 1)


@pytest.mark.parametrize("layer", [nn.Linear(3, 2), nn.Sequential(nn.Linear(3, 2))])
def test_a_wrong_number_of_inputs_is_named(layer):
    x = np.zeros((4, 3), np.float32)
    with pytest.raises(ShapeError, match=r"^Linear: expected inputs \(x\), found 2 of them$"):
        layer.predict((x, x))


def test_module_without_forward_says_so():
    class Idle(nn.Module):
        pass

    with pytest.raises(NotImplementedError, match=r"Idle has to define forward\(\)"):
        Idle()(1)


def test_repr_shows_the_tree():
    model = nn.Sequential(nn.Linear(3, 2, bias=False), nn.Sequential(nn.ReLU()))
    assert repr(model) == (
        "Sequential(\n"
        "  (layers.0): Linear(3, 2, bias=False)\n"
        "  (layers.1): Sequential(\n"
        "    (layers.0): ReLU()\n"
        "  )\n"
        ")"
    )


def test_buffers_lie_in_a_vector_of_their_own_and_are_no_parameters():
    model = nn.Sequential(nn.BatchNorm(2), nn.Linear(2, 2, seed=0), nn.BatchNorm(2))
    assert model.flat_buffers.shape == (8,)
    model.load_vector(np.arange(22, dtype=np.float32))
    np.testing.assert_array_equal(model.flat, np.arange(14))
    np.testing.assert_array_equal(model[2].running_variance.data, [20, 21])
    model[0].running_mean.data[...] = 9
    assert (model.flat_buffers[:2] == 9).all()
    assert "layers.0.running_mean" not in dict(model.named_parameters())
    assert "layers.0.running_mean" in model.state_dict()
    with pytest.raises(ShapeError, match="load_vector: expected a vector of 22 numbers"):
        model.load_vector(np.zeros(14, np.float32))


def test_not_strict_copies_common_names():
    model = nn.Linear(2, 2, seed=0)
    bias = model.bias.data.copy()
    model.load_state_dict({"weight": np.ones((2, 2)), "other": np.ones(3)}, strict=False)
    np.testing.assert_array_equal(model.weight.data, np.ones((2, 2)))
    np.testing.assert_array_equal(model.bias.data, bias)
    with pytest.raises(ShapeError, match="weight has shape"):
        model.load_state_dict({"weight": np.ones(3)}, strict=False)


class WithTable(nn.Module):
    def __init__(self):
        self.table = nn.Parameter(np.arange(6).reshape(3, 2), sparse=True)
        self.gain = nn.Parameter(np.ones(4))
        self.mean = nn.Buffer(np.full(2, 5))


def test_tables_lie_outside_of_the_vector():
    model = WithTable()
    assert model.flat.size == model.flat_grad.size == 4
    np.testing.assert_array_equal(model.vector, [1, 1, 1, 1, 5, 5])
    assert list(model.tables) == ["table"]
    assert [name for name, _ in model.named_parameters()] == ["table", "gain"]
    assert pickle.loads(pickle.dumps(model)).tables["table"].sparse


def test_a_snapshot_has_all_and_is_restored():
    model, other = WithTable(), WithTable()
    model.table.data[:] = 7
    model.gain.data[:] = 8
    model.flat_buffers[:] = 9
    whole = model.snapshot()
    np.testing.assert_array_equal(whole, [8] * 4 + [9] * 2 + [7] * 6)
    other.restore(whole)
    for name, array in model.state_dict().items():
        np.testing.assert_array_equal(other.state_dict()[name], array)
    assert not np.shares_memory(other.table.data, whole)
    other.restore(whole, copy=False)
    assert np.shares_memory(other.table.data, whole)
    assert not np.shares_memory(other.vector, whole)
    with pytest.raises(ShapeError, match="restore: expected a vector of 12 numbers"):
        other.restore(whole[:6])
