"""Checks of models of the zoo: a training step, a model file, and published definitions."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from daskdl.nn import BatchNorm, Conv2d, CrossEntropyLoss, Linear, Module, load, save


def gradient_is_right(
    model: Module, x: Any, classes: int = 2, loss: Any = None, labels: Any = None
) -> None:
    """Assert that a small step down the gradient lessens the loss by about the predicted part.

    Every parameter has to have a gradient.
    """
    loss = loss or CrossEntropyLoss()
    labels = np.arange(len(x)) % classes if labels is None else labels
    model.zero_grad()
    before = loss(model(x), labels)
    before.backward()
    without_gradient = {name for name, p in model.named_parameters() if not p.grad.any()}
    assert not without_gradient
    gradient = model.flat_grad.astype(np.float64)
    part = 1e-3 * float(before) / (gradient @ gradient)  # of the loss, to first order
    model.load_flat((model.flat - part * gradient).astype(np.float32))
    fall = 1 - float(loss(model(x), labels)) / float(before)
    assert 0.5e-3 < fall < 1.5e-3


def file_brings_back(model: Module, x: Any, path: Any) -> None:
    """Assert that a model file gives the same logits."""
    save(model, path)
    restored = load(path)
    assert type(restored) is type(model)
    actual, expected = restored.eval()(x), model.eval()(x)
    parts = (actual, expected) if isinstance(actual, tuple) else ((actual,), (expected,))
    for one, other in zip(*parts, strict=True):
        assert np.array_equal(one.data, other.data)


Layer = tuple[str, tuple[int, ...], tuple[int, ...]]


def definition(name: str) -> tuple[list[Layer], int]:
    """Return (kind, shape of the weights, strides) of all layers, and the count of parameters.

    Weights are (out, in, rows, columns). Skips the test where onnx is not installed.
    """
    onnx = pytest.importorskip("onnx")
    folder = Path(onnx.__file__).parent / "backend/test/data/light"
    graph = onnx.load(folder / f"light_{name}.onnx").graph
    constants = {t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer}
    shapes = {key: np.shape(value) for key, value in constants.items()}
    for node in graph.node:  # "light": weights are their shapes filled with one number
        if node.op_type == "ConstantOfShape":
            shapes[node.output[0]] = tuple(int(n) for n in constants[node.input[0]])
    layers, counted = [], set()
    for node in graph.node:
        settings = {a.name: tuple(a.ints) for a in node.attribute}
        if node.op_type == "Conv":
            layers.append(("conv", shapes[node.input[1]], settings["strides"]))
        if node.op_type in ("Conv", "BatchNormalization"):
            counted.update(node.input[1:3])  # not the running statistics
    classifier = next(node for node in graph.node if node.op_type == "Gemm")
    bias = shapes[classifier.input[2]]
    counted.add(classifier.input[2])
    weight = math.prod(size(classifier.input[1], graph, constants, shapes))
    layers.append(("linear", (bias[0], weight // bias[0]), ()))
    return layers, sum(math.prod(shapes[key]) for key in counted) + weight


def size(name, graph, constants, shapes):
    """Return the shape of an input that may be the result of a Reshape."""
    if name in shapes:
        return shapes[name]
    node = next(node for node in graph.node if name in node.output)
    return shapes[node.input[0]]


def layers_of(model: Module) -> list[Layer]:
    """Return a model's layers as :func:`definition` does."""
    layers: list[Layer] = []
    for _, module in model.modules():
        if isinstance(module, Conv2d):
            out, rows, columns, below = module.weight.shape
            layers.append(("conv", (out, below, rows, columns), tuple(module.stride)))
        elif isinstance(module, Linear):
            layers.append(("linear", module.weight.shape, ()))
        else:
            assert isinstance(module, BatchNorm) or not any(
                hasattr(value, "requires_grad") for value in vars(module).values()
            )
    return layers
