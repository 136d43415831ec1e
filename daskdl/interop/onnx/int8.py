"""ONNX nodes of layers with int8 weights: QuantizeLinear and DequantizeLinear around floats (QDQ).

A batch norm behind a product is merged into the product's scale and bias. All later readers of a
rounded value get the rounded numbers, as in our own inference.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from daskdl.errors import SettingsError
from daskdl.interop.building import Value
from daskdl.interop.onnx.emitter import Emitter
from daskdl.interop.onnx.images import attributes_of
from daskdl.interop.onnx.operations import writer
from daskdl.ops.int8 import unpacked
from daskdl.tensor import Array

#: Operators whose results inference stores rounded.
_ROUNDED = {"Add", "BatchNormalization", "Clip", "Conv", "Gemm", "MatMul", "MaxPool", "Relu"}


class Product(NamedTuple):
    """Weights of a Conv, Gemm or MatMul, written when all nodes are known.

    ``numbers`` are int8; ``axis`` is their axis of outputs. Scale and bias are float32 (out,).
    """

    numbers: Array
    axis: int
    scale: Array
    bias: Array | None


@writer("int8_conv2d")
def conv(emit: Emitter, inputs: Any, settings: Any, shapes: Any) -> Value:
    """Write a convolution of rounded images."""
    x, numbers, scale, bias = _parts(emit, inputs, settings)
    name = _rounded(emit, emit.second(x).name, settings["of_x"])
    y = emit.node("Conv", name, "", **attributes_of(settings, 2))
    whole = np.moveaxis(numbers, -1, 1)
    emit.products[y] = Product(whole, 0, scale, bias)
    return Value(y, 4, True)


@writer("int8_linear")
def linear(emit: Emitter, inputs: Any, settings: Any, shapes: Any) -> Value:
    """Write Gemm for inputs of two axes, otherwise MatMul and Add."""
    if settings["of_x"] is None:
        raise SettingsError(
            "onnx: expected int8 layers with one scale, found one for each row, which ONNX does "
            "not have; quantize the model with other activations than dynamic"
        )
    x, numbers, scale, bias = _parts(emit, inputs, settings)
    name = _rounded(emit, emit.last(x).name, settings["of_x"])
    if x.rank == 2:
        y = emit.node("Gemm", name, "", transB=1)
        emit.products[y] = Product(numbers, 0, scale, bias)
        return Value(y, 2)
    y = emit.node("MatMul", name, "")
    emit.products[y] = Product(numbers.T, 1, scale, None)
    return Value(y if bias is None else emit.node("Add", y, bias), x.rank)


def finish(emit: Emitter) -> None:
    """Write the weights of products with merged batch norms; let readers share rounded values."""
    for y, product in emit.products.items():
        (node,) = (n for n in emit.nodes if y in n.output)
        readers = [n for n in emit.nodes if y in n.input]
        if len(readers) == 1 and readers[0].op_type == "BatchNormalization":
            product = _with_norm(emit, product, readers[0])
            node.output[0] = readers[0].output[0]
            emit.nodes.remove(readers[0])
        del node.input[1:]
        node.input.extend(_weights(emit, product))
    made_by = {name: node.op_type for node in emit.nodes for name in node.output}
    for i, node in enumerate(emit.nodes):
        x = node.input[0] if node.op_type == "QuantizeLinear" else ""
        if made_by.get(x) in _ROUNDED:
            (floats,) = (n.output[0] for n in emit.nodes if node.output[0] in n.input)
            for later in emit.nodes[i + 1 :]:
                names = [floats if name == x else name for name in later.input]
                del later.input[:]
                later.input.extend(names)


def _parts(emit: Emitter, inputs: Any, settings: Any) -> tuple[Value, Array, Array, Array | None]:
    x, words, scale, bias = inputs
    numbers = unpacked(emit.arrays[words.name], settings["shape"])
    shift = None if bias is None else emit.arrays[bias.name]
    return x, numbers, emit.arrays[scale.name], shift


def _rounded(emit: Emitter, name: str, of_x: tuple[float, int]) -> str:
    """Return the name of a value after quantization and back; written once for each scale."""
    key = name, of_x
    if key not in emit.rounded:
        scale, zero = np.float32(of_x[0]), np.uint8(of_x[1])
        y = emit.node("QuantizeLinear", name, scale, zero)
        emit.rounded[key] = emit.node("DequantizeLinear", y, scale, zero)
    return emit.rounded[key]


def _with_norm(emit: Emitter, product: Product, norm: Any) -> Product:
    """Return weights with a batch norm merged in; a negative factor flips the numbers' sign."""
    factor, shift, mean, variance = (emit.arrays[n].astype(np.float64) for n in norm.input[1:])
    (eps,) = (a.f for a in norm.attribute if a.name == "epsilon")
    by = factor / np.sqrt(variance + eps)
    before = 0.0 if product.bias is None else product.bias
    sign = np.where(by < 0, -1, 1).astype(np.int8).reshape(-1, *(1,) * (product.numbers.ndim - 1))
    return product._replace(
        numbers=product.numbers * sign,
        scale=(product.scale * np.abs(by)).astype(np.float32),
        bias=((before - mean) * by + shift).astype(np.float32),
    )


def _weights(emit: Emitter, product: Product) -> list[Any]:
    """Write weights; return the names of their dequantized numbers and of the bias.

    The bias stays float32: rounded to integers of the sums' scale, it would change results.
    """
    numbers, axis, scale, bias = product
    # Not shared: onnxruntime without VNNI converts them to uint8 per node, under the same names.
    whole = [emit.constant(a, shared=False) for a in (numbers, np.zeros(len(scale), np.int8))]
    name = emit.node("DequantizeLinear", whole[0], scale, whole[1], axis=axis)
    emit.nodes.insert(0, emit.nodes.pop())
    return [name] if bias is None else [name, emit.constant(bias)]
