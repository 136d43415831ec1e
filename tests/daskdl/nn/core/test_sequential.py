"""Containers that run modules in order or side by side."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import SettingsError, ShapeError
from daskdl.tensor import Tensor
from tests.daskdl.gradients import normal
from tests.daskdl.nn.layers import check_layer


def network():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding="same", seed=0),
        nn.Tanh(),
        nn.Sequential(nn.SpaceToDepth(2), nn.Conv2d(32, 8, 3, stride=2, seed=1), nn.Softplus()),
        nn.Flatten(),
        nn.Linear(8, 2, seed=2),
    )


def test_network(tmp_path):
    check_layer(
        network,
        (3, 6, 6, 1),
        (3, 2),
        tmp_path,
        parameters=9 * 8 + 8 + 9 * 32 * 8 + 8 + 16 + 2,
        wrong_shape=None,
    )


def test_layers_by_number_and_name():
    model = network()
    assert len(model) == 5
    assert isinstance(model[4], nn.Linear)
    names = [name for name, _ in model.named_parameters()]
    assert names[:2] == ["layers.0.weight", "layers.0.bias"]
    assert names[2] == "layers.2.layers.1.weight"


def test_empty_hands_its_input_on():
    x = object()
    assert nn.Sequential()(x) is x


def test_adding_is_the_same_as_giving(tmp_path):
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


def test_adding_to_a_model_that_was_used_keeps_its_weights_in_one_vector():
    model = nn.Sequential(nn.Linear(3, 4, seed=0))
    before = model.flat.copy()
    model.add(nn.Linear(4, 2, seed=1))
    np.testing.assert_array_equal(model.flat[:16], before)
    assert model.flat.size == 26


X = normal(2, 3, 4).astype("f4")


def test_each_layer_gets_what_it_is_meant_to():
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


def test_what_does_not_fit_is_said():
    with pytest.raises(ShapeError, match=r"Concat: .* axis -1 alone, found \(2, 3, 4\), \(2, 12\)"):
        nn.Concat(nn.Tanh(), nn.Flatten())(X)
    with pytest.raises(ShapeError, match=r"Parallel: expected 2 inputs, .* found 1"):
        nn.Parallel(nn.Tanh(), nn.Tanh())(X)
    with pytest.raises(ShapeError, match=r"Residual: .* found \(2, 12\) and \(2, 3, 4\)"):
        nn.Residual(nn.Flatten())(X)
