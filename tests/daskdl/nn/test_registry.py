"""Every layer of the registry: it is exported, has a recipe, and survives files and pickling."""

from __future__ import annotations

import copy
import inspect
import pickle

import numpy as np
import pytest

import daskdl.nn.losses
from daskdl import nn, ops
from daskdl.errors import DataError
from daskdl.nn.core.arguments import as_arrays, parts_of
from daskdl.nn.inference import Inference
from daskdl.tensor import Tensor
from tests.daskdl.gradients import as_tuple, check_gradient
from tests.daskdl.nn.recipes import FLOATS, NOT_TRAINED, OTHERS, inputs_of

LOSSES = daskdl.nn.losses.__name__
ALL = sorted(
    name
    for name, layer in nn.Module.registry.items()
    if layer.__module__.startswith("daskdl.nn.")
    and not layer.__module__.startswith(LOSSES)
    and not name.startswith("_")
)


#: Layers whose kernels of float64 take seconds to compile.
SLOW = {
    "Bidirectional", "GRU", "GroupNorm", "LocalResponseNorm", "MultiHeadAttention", "RNN",
    "TransformerBlock",
}  # fmt: skip
MARKED = [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in ALL]
#: Layers whose forward looks at numbers: it makes masks of them, or uses them as ids.
IMPURE = {"BinaryThreshold", "Embedding", "EmbeddingBag", "Masking", "SReLU"}
#: Pure layers that no program can compute, since forward makes new float arrays.
UNWRITTEN = {"AdaptiveAvgPool2d", "ConvLSTM", "PositionalEncoding", "Resize", "TrajGRU", "Upsample"}


class OfOneVector(nn.Module, pure=True):
    """A layer whose inputs are joined to one vector, since a program has one input."""

    def __init__(self, layer, shapes):
        self.layer, self.shapes = layer, shapes

    def forward(self, x):
        inputs, start = [], 0
        for shape in self.shapes:
            stop = start + int(np.prod(shape))
            part = ops.take(x, index=(slice(start, stop),))
            inputs.append(ops.reshape(part, shape=shape))
            start = stop
        return self.layer(*inputs)


def layer_of(name):
    return {**FLOATS, **OTHERS}[name][0]()


def as_tensor(x):
    """Return floats as a tensor, which some layers return unchanged."""
    return x if isinstance(x, Tensor) or x.dtype.kind != "f" else Tensor(x)


def result_of(layer, inputs):
    with nn.drawing(1):
        return [tensor.data for tensor in as_tuple(layer(*map(as_tensor, inputs)))]


def singles(name):
    return [x.astype("f4") if x.dtype == np.float64 else x for x in inputs_of(name)]


def test_every_layer_has_a_recipe_and_is_exported():
    assert sorted({**FLOATS, **OTHERS}) == ALL
    assert not [name for name in ALL if getattr(nn, name, None) is not nn.Module.registry[name]]
    assert set(ALL) <= set(nn.__all__)


@pytest.mark.parametrize("name", ALL)
def test_round_trips(name, tmp_path):
    """The same bits from the same call, a copy, a pickle, and a model file."""
    layer, inputs = layer_of(name), [x.copy() for x in singles(name)]
    others = [layer_of(name), pickle.loads(pickle.dumps(layer)), copy.deepcopy(layer)]
    nn.save(layer, tmp_path / "layer.safetensors")
    others.append(nn.load(tmp_path / "layer.safetensors"))
    assert repr(others[-1]) == repr(layer)
    first = result_of(layer, inputs)
    assert {part.dtype for part in first} == {np.dtype(np.float32)}
    for other in others:
        assert type(other) is type(layer)
        for a, b in zip(first, result_of(other, inputs), strict=True):
            np.testing.assert_array_equal(a, b)
    for x, original in zip(inputs, singles(name), strict=True):
        np.testing.assert_array_equal(x, original)


@pytest.mark.parametrize("name", MARKED)
def test_gradients(name):
    """Check all inputs and parameters in float64; each forward pass draws the same numbers."""
    if name in NOT_TRAINED:
        pytest.skip("is not trained")
    if name == "BinaryThreshold":
        pytest.skip("has no gradient")
    if name in ("GradientReversal", "NegativeEntropyPenalty"):
        pytest.skip("has another gradient than its value's; see the layer's own test")
    layer, inputs = layer_of(name), inputs_of(name)
    names = [parameter for parameter, _ in layer.named_parameters()]
    owners = dict(layer.modules())
    floats = [x for x in inputs if x.dtype == np.float64]
    others = [x for x in inputs if x.dtype != np.float64]
    layer.flat  # noqa: B018 - so that buffers are views
    for _, tensor in layer.held():
        if isinstance(tensor, nn.Frozen):
            tensor.data = tensor.data.astype(np.float64)

    def call(*arrays):
        for parameter, value in zip(names, arrays[len(floats) :], strict=True):
            owner, _, attribute = parameter.rpartition(".")
            owners[owner].__dict__[attribute] = value
        with nn.drawing(1):
            return layer(*map(as_tensor, arrays[: len(floats)]), *others)

    values = [p.data.astype(np.float64) for p in layer.parameters()]
    check_gradient(call, *floats, *values, tolerance=1e-5)


@pytest.mark.parametrize("name", ALL)
def test_a_pure_layers_program_is_right_for_other_numbers(name):
    """The program of one input gives another of its shape the bits of a fresh pass."""
    layer = layer_of(name)
    assert layer.pure == (name not in IMPURE)
    if name in IMPURE:
        return
    inputs = singles(name)
    model = OfOneVector(layer, [x.shape for x in inputs]).eval()
    one = np.concatenate([x.ravel() for x in inputs])
    other = np.abs(one[::-1]) if name in ("Log", "Sqrt") else np.float32(-1.5) * one[::-1]
    other[: other.size // 2] = 1 if name == "Log" else 0  # a mask would depend on these
    inference, fresh = Inference(model), Inference(model)
    with nn.drawing(1):
        inference.run(model, one)
        (program,) = inference._programs.values()
        assert (program is None) == (name in UNWRITTEN)
        for a, b in zip(inference.run(model, other), fresh.run(model, other), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ALL)
def test_masked_elements_are_missing_data(name):
    """Called by hand, a layer takes masked floats as NaN, and refuses masked ids."""
    inputs = singles(name)
    below = np.ma.masked_array(inputs[0], np.arange(inputs[0].size).reshape(inputs[0].shape) == 1)
    if inputs[0].dtype.kind != "f":
        with pytest.raises(DataError, match=f"{name}: expected no masked elements of int64"):
            layer_of(name)(below, *inputs[1:])
        return
    results = []
    for x in (below, below.filled(np.nan)):
        with nn.drawing(1):
            results.append(parts_of(as_arrays(layer_of(name)(x, *inputs[1:]))))
    for actual, expected in zip(*results, strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_a_users_class_declares_itself_that_it_is_pure():
    class Inherited(nn.Sequential):
        pass

    class Declared(nn.Sequential, pure=True):
        pass

    class Attribute(nn.Module):
        pure = True

    assert nn.Sequential.pure
    assert not Inherited.pure
    assert Declared.pure
    assert Attribute.pure


@pytest.mark.parametrize("name", ALL)
def test_arguments_and_classes_are_described(name):
    """Constructors name their arguments, and each class has a docstring."""
    layer = nn.Module.registry[name]
    kinds = {p.kind for p in inspect.signature(layer.__init__).parameters.values()}
    assert inspect.Parameter.VAR_KEYWORD not in kinds
    assert layer.__doc__
    assert len(layer.__doc__.split("\n")[0]) > 5


def test_a_users_class_with_the_name_of_a_layer_does_not_replace_it(tmp_path):
    class Residual(nn.Module):
        def __init__(self, scale):
            self.scale = scale

        def forward(self, x):
            return x * self.scale

    assert nn.Module.registry["Residual"] is nn.Residual
    model = nn.Residual(nn.Sequential(Residual(2.0), nn.Residual(nn.Tanh())))
    nn.save(model, tmp_path / "m.safetensors")
    loaded = nn.load(tmp_path / "m.safetensors")
    assert type(loaded) is nn.Residual
    assert type(loaded.layer[0]) is Residual
    assert type(loaded.layer[1]) is nn.Residual
