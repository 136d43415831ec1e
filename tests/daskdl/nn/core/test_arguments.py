"""Arguments of modules, their parameters, and prediction as a method."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest

from daskdl import nn
from daskdl.data import Ragged, SampleSet
from daskdl.errors import SettingsError, ShapeError
from daskdl.metrics import Accuracy
from daskdl.nn import Linear, ReLU, Sequential
from daskdl.nn.core.arguments import as_inputs, pair, sides, sizes


def test_one_number_stands_for_all():
    assert sizes("x", 2, 3) == (2, 2, 2)
    assert sizes("x", [1, 2, 3], 3) == (1, 2, 3)
    assert pair("x", (0, 1), least=0) == (0, 1)
    assert sides("x", 1, 2) == (1, 1, 1, 1)
    assert sides("x", (1, 2), 2) == (1, 1, 2, 2)
    assert sides("x", (1, 2, 3, 4), 2) == (1, 2, 3, 4)
    assert sides("x", (1, 2), 1) == (1, 2)


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "a", (1,), (1, 0), None])
def test_other_values_are_quoted(value):
    with pytest.raises(ShapeError, match=r"^Layer\.size: expected an integer >= 1 or a pair"):
        sizes("Layer.size", value, 2)


@pytest.mark.parametrize("seed", [-1, 1.5, "a"])
def test_a_wrong_seed_is_quoted(seed):
    with pytest.raises(SettingsError, match=rf"^seed: expected .* at least 0, .* {seed!r}"):
        Linear(2, 2, seed=seed)


@pytest.mark.parametrize(
    ("dtype", "expected"), [("f8", "f4"), ("f2", "f4"), (">f4", "f4"), ("u1", "u1"), ("i8", "i8")]
)
def test_floating_point_numbers_become_float32(dtype, expected):
    x = np.arange(6).reshape(2, 3).astype(dtype)
    result = as_inputs(x)
    assert result.dtype == np.dtype(expected)
    np.testing.assert_array_equal(result, x)


@pytest.mark.parametrize(
    "x", [np.zeros((2, 3), np.float32), np.array([["a"]]), Ragged.of([[0.5], [1.0, 2.0]])]
)
def test_other_inputs_are_returned_unchanged(x):
    assert as_inputs(x) is x


@pytest.mark.parametrize("kind", [nn.Parameter, nn.Buffer])
def test_numbers_are_copied_as_float32(kind):
    values = np.arange(3.0)
    tensor = kind(values)
    values[:] = 9
    assert tensor.dtype == np.float32
    np.testing.assert_array_equal(tensor.data, [0, 1, 2])
    assert tensor.requires_grad == (kind is nn.Parameter)


@pytest.mark.parametrize(
    "tensor",
    [
        nn.Parameter([[1.0, 2.0]]),
        nn.Parameter([[1.0, 2.0]], requires_grad=False),
        nn.Parameter([[1.0, 2.0]], sparse=True),
        nn.Buffer([1.0, 2.0]),
    ],
)
def test_pickles_keep_kind_and_settings(tensor):
    same = pickle.loads(pickle.dumps(tensor))
    assert type(same) is type(tensor)
    assert same.data.tolist() == tensor.data.tolist()
    assert (same.requires_grad, same.keeps_rows) == (tensor.requires_grad, tensor.keeps_rows)


X = np.random.default_rng(0).normal(size=(9, 3)).astype(np.float32)


def test_a_module_predicts_classifies_embeds_and_evaluates() -> None:
    model = Sequential(Linear(3, 4, seed=1), ReLU(), Linear(4, 5, seed=2))
    scores = model(X).data
    np.testing.assert_allclose(model.predict(X, batch_size=2, threads=1), scores, rtol=1e-5)
    classes = model.predict_class(X, batch_size=4)
    np.testing.assert_array_equal(classes, scores.argmax(1))
    inner = model.embed(X, "layers.0")
    np.testing.assert_allclose(inner, model.layers[0](X).data, rtol=1e-5)
    samples = SampleSet.from_arrays(x=X, y=np.where(np.arange(9) < 3, classes, (classes + 1) % 5))
    assert model.evaluate(samples, [Accuracy()]) == {"accuracy": 3 / 9}


def test_a_layer_may_go_by_the_name_of_a_method() -> None:
    class Embedder(Sequential):
        def __init__(self) -> None:
            self.embed = Linear(3, 2, seed=1)
            super().__init__(self.embed)

    assert Embedder().predict(X).shape == (9, 2)


@pytest.mark.slow
def test_layers_load_nothing_of_dask() -> None:
    code = (
        "import daskdl.nn, sys; "
        "assert not {'dask', 'distributed', 'daskdl.predict'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
