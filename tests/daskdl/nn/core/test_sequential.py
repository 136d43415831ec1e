"""Containers that run modules in order or side by side."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import SettingsError
from daskdl.tensor import Tensor
from tests.daskdl.gradients import normal


def test_layers_by_number_and_name():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Sequential(nn.Tanh(), nn.Linear(4, 2)))
    assert len(model) == 3
    assert isinstance(model[1], nn.Tanh)
    names = [name for name, _ in model.named_parameters()]
    assert names[:2] == ["layers.0.weight", "layers.0.bias"]
    assert names[2] == "layers.2.layers.1.weight"


def test_an_empty_container_returns_its_input():
    x = object()
    assert nn.Sequential()(x) is x


def test_adding_layers_equals_passing_them(tmp_path):
    x = normal(2, 3).astype("f4")
    model = nn.Sequential(nn.Linear(3, 4, seed=0)).add(nn.Tanh()).add(nn.Linear(4, 2, seed=1))
    expected = nn.Sequential(nn.Linear(3, 4, seed=0), nn.Tanh(), nn.Linear(4, 2, seed=1))
    np.testing.assert_array_equal(model(x).data, expected(x).data)
    assert repr(model) == repr(expected)
    nn.save(model, tmp_path / "m.safetensors")
    np.testing.assert_array_equal(nn.load(tmp_path / "m.safetensors")(x).data, model(x).data)
    with pytest.raises(SettingsError, match=r"Sequential\.add: expected a Module, found 'ReLU'"):
        model.add("ReLU")
    with pytest.raises(SettingsError, match=r"^Sequential: expected a Module, found <class"):
        nn.Sequential(nn.Linear(3, 4), nn.ReLU)


X = normal(2, 3, 4).astype("f4")


def test_containers_pass_inputs_to_their_layers():
    a, b = nn.Linear(4, 3, seed=0), nn.Linear(4, 3, seed=1)
    ya, yb = a(X).data, b(X).data
    for first, second in (nn.Branches(a, b)(X), nn.Parallel(a, b)(X, X), nn.Parallel(a, b)((X, X))):
        np.testing.assert_array_equal(first.data, ya)
        np.testing.assert_array_equal(second.data, yb)
    first, second = nn.Map(a)(X, X + 1)
    np.testing.assert_array_equal(first.data, ya)
    np.testing.assert_array_equal(second.data, a(X + 1).data)
    np.testing.assert_array_equal(nn.Concat(a, b)(X).data, np.concatenate([ya, yb], -1))
    np.testing.assert_array_equal(nn.Concat(a, b, axis=1)(X).data, np.concatenate([ya, yb], 1))
    np.testing.assert_array_equal(nn.Residual(a, b, nn.ReLU())(X).data, np.maximum(ya + yb, 0))
    assert nn.Identity()(X) is X


def test_a_shortcut_takes_its_part_of_the_gradient():
    x = Tensor(X, requires_grad=True)
    nn.Residual(nn.Affine(3.0))(x).backward(np.ones_like(X))
    np.testing.assert_array_equal(x.grad, np.full_like(X, 4))


def model():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding="same", seed=0),
        nn.BatchNorm(4),
        nn.Residual(nn.Dropout(0.5)),
        nn.Flatten(),
        nn.Linear(144, 2, seed=1).freeze("bias"),
    )


def test_rows_and_totals():
    summary = model().summary((6, 6, 1))
    rows = {row.name: row for row in summary.rows}
    assert list(rows)[:3] == ["", "layers.0", "layers.1"]
    assert rows["layers.0"].output_shapes == (("N", 6, 6, 4),)
    assert rows["layers.0"].parameters == 9 * 4 + 4
    assert rows["layers.0"].bytes == 6 * 6 * 4 * 4
    assert rows["layers.4"].output_shapes == rows[""].output_shapes == (("N", 2),)
    assert sum(row.parameters for row in summary.rows) == summary.parameters == 40 + 8 + 290
    assert summary.trainable == summary.parameters - 2
    assert summary.buffers == 8


def test_text_and_html():
    summary = model().summary((6, 6, 1))
    lines = str(summary).split("\n")
    assert lines[0].split() == ["name", "layer", "output", "shape", "parameters", "bytes"]
    assert lines[3].split() == ["layers.0", "Conv2d", "(N,", "6,", "6,", "4)", "40", "576"]
    assert lines[-1] == "338 parameters (336 trainable) and 8 numbers in buffers, 1,384 bytes"
    assert repr(summary) == str(summary)
    html = summary._repr_html_()
    assert html.count("<tr>") == len(summary.rows) + 1
    assert "<td>Conv2d</td>" in html


def test_a_summary_leaves_the_model_as_it_was():
    network = model()
    network.layers[2].eval()
    before = network.flat_buffers.copy()
    network.summary((6, 6, 1))
    np.testing.assert_array_equal(network.flat_buffers, before)
    modes = [module.training for _, module in network.modules()]
    assert modes == [True] * 3 + [False] * 2 + [True] * 2
    assert not any("forward" in vars(module) for _, module in network.modules())
    with pytest.raises(ValueError, match="Conv2d: expected"):
        network.summary((6, 6, 2))
    assert not any("forward" in vars(module) for _, module in network.modules())


def test_several_inputs_ids_and_results():
    assert nn.Bilinear(3, 4, 5).summary([(3,), (4,)]).rows[0].output_shapes == (("N", 5),)
    assert nn.Embedding(9, 4).summary((7,), "int64").rows[0].output_shapes == (("N", 7, 4),)
    assert len(nn.LSTM(3, 4).summary((7, 3)).rows[0].output_shapes) == 3


def test_shared_parameters_count_once():
    layer = nn.Linear(3, 3)
    summary = nn.Sequential(layer, layer).summary((3,))
    assert summary.parameters == sum(row.parameters for row in summary.rows) == 12


def small_network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 2, seed=0), nn.BatchNorm(2), nn.Embedding(5, 2, sparse=True))


def test_a_module_that_stays_the_same_is_not_searched_again(monkeypatch):
    model = small_network()
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
    lambda model: model.layers.pop(0),
    lambda model: model.layers.clear(),
    lambda model: model.layers.append(nn.Linear(3, 2, seed=1)),
    lambda model: setattr(model[0], "bias", nn.Parameter(np.ones(2))),
    lambda model: setattr(model[0], "more", nn.Parameter(np.ones(3))),
    lambda model: delattr(model[1], "bias"),
    lambda model: setattr(model[0].bias, "data", np.full(2, 9, np.float32)),
    lambda model: setattr(model[1].running_mean, "data", np.full(2, 7, np.float32)),
])  # fmt: skip
def test_changes_of_a_module_are_seen(change):
    model = small_network()
    assert model.vector.size == 8 + 4 + 4
    change(model)
    tensors = [p for p in model.parameters() if not p.sparse]
    trained = sum(p.data.size for p in tensors)
    tensors += [buffer for _, buffer in model.named_buffers()]
    expected = np.concatenate([[], *(t.data.ravel() for t in tensors)])
    np.testing.assert_array_equal(model.vector, expected)
    assert model.flat.size == model.flat_grad.size == trained
    assert all(np.shares_memory(t.data, model.vector) for t in tensors)


def test_an_array_that_replaces_another_is_copied_into_the_vector():
    model = small_network()
    vector, mean, weight = model.vector, model[1].running_mean, model[0].weight
    mean.data = mean.data + np.float32(7)
    weight.data = np.full((2, 3), 5.0)  # of another dtype
    assert model.vector is vector
    np.testing.assert_array_equal(model.flat_buffers[:2], 7)
    np.testing.assert_array_equal(model.flat[:6], 5)
    assert weight.data.dtype == np.float32
    assert all(np.shares_memory(t.data, vector) for t in (mean, weight))


def test_other_attributes_leave_the_vector_where_it_is():
    model = small_network()
    vector = model.vector
    model.eval()
    model[1].momentum = 0.5
    assert model.vector is vector


def test_a_module_is_freed_with_its_last_reference():
    gc.disable()
    try:
        model = small_network()
        model.zero_grad()
        gone = weakref.ref(model)
        del model
        assert gone() is None
    finally:
        gc.enable()
