"""Quantised operators of onnxruntime beside the standard, which its quantizer writes.

Each dequantises its inputs, computes in float32 and quantises the result
(https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from daskdl.errors import SettingsError
from daskdl.nn.operators.quantize import (
    centred,
    dequantize_linear,
    dynamic_quantize_linear,
    matmul_integer,
    quantize_linear,
)
from daskdl.nn.operators.table import TABLE, Call, Value, array, operator
from daskdl.tensor import Array


def _real(x: Value, scale: Value, zero: Value = None) -> Array:
    """Return the numbers that integers stand for, float32; one scale for all of them."""
    return (centred(x, zero) * array(scale)).astype(np.float32)


def _plain(call: Call, *values: Value) -> Array:
    """Compute the operator of the standard that a quantised one is called by."""
    if call.get("channels_last"):
        raise SettingsError(f"{call.name}: expected channels on axis 1, found channels_last")
    name = call.name.removeprefix("com.microsoft:QLinear")
    return array(TABLE[name](replace(call, name=name, opset=call.get("opset", 13)), *values))


@operator("com.microsoft:QuantizeLinear", keys="axis")
def quantize(call: Call, x: Value, scale: Value, zero: Value = None) -> Value:
    """``round(x / scale) + zero``, cut to the integers there are."""
    return quantize_linear(call, x, scale, zero)


@operator("com.microsoft:DequantizeLinear", keys="axis")
def dequantize(call: Call, x: Value, scale: Value, zero: Value = None) -> Value:
    """``(x - zero) * scale``."""
    return dequantize_linear(call, x, scale, zero)


@operator(
    "com.microsoft:QLinearAdd", "com.microsoft:QLinearMul", "com.microsoft:QLinearSigmoid", keys=""
)  # fmt: skip
@operator("com.microsoft:QLinearLeakyRelu", keys="alpha")
@operator("com.microsoft:QLinearSoftmax", keys="axis opset")
@operator("com.microsoft:QLinearReduceMean", keys="axes keepdims")
@operator("com.microsoft:QLinearGlobalAveragePool", keys="channels_last")
@operator(
    "com.microsoft:QLinearAveragePool",
    keys="auto_pad ceil_mode channels_last count_include_pad kernel_shape pads strides",
)
def qlinear(call: Call, *values: Value) -> Value:
    """Compute on (x, scale, zero) one after the other; the scale and zero of the result last."""
    *parts, scale, zero = values
    reals = [_real(*parts[i : i + 3]) for i in range(0, len(parts), 3)]
    return quantize_linear(replace(call, attributes={}), _plain(call, *reals), scale, zero)


@operator("com.microsoft:QLinearConcat", keys="axis")
def concat(call: Call, scale: Value, zero: Value, *values: Value) -> Value:
    """Join (x, scale, zero) along an axis."""
    return qlinear(call, *values, scale, zero)


@operator("com.microsoft:QLinearWhere", keys="")
def where(call: Call, condition: Value, *values: Value) -> Value:
    """Choose between (x, scale, zero) and (y, scale, zero)."""
    *parts, scale, zero = values
    chosen = _plain(call, condition, _real(*parts[:3]), _real(*parts[3:]))
    return quantize_linear(call, chosen, scale, zero)


@operator("com.microsoft:QGemm", keys="alpha transA transB")
def gemm(
    call: Call, a: Value, sa: Value, za: Value, b: Value, sb: Value, zb: Value, c: Value = None,
    sy: Value = None, zy: Value = None,
) -> Value:  # fmt: skip
    """``alpha * a @ b + c``; float32 unless the result has a scale."""
    transposed = bool(call.get("transB", 0))
    x, y = centred(a, za), centred(b, zb, 0 if transposed else None)
    product = (x.T if call.get("transA", 0) else x) @ (y.T if transposed else y)
    total = product + (0 if c is None else array(c))
    real = total * (call.get("alpha", 1.0) * array(sa).astype(np.float64) * array(sb))
    if sy is None:
        return real.astype(np.float32)
    return quantize_linear(replace(call, attributes={}), real.astype(np.float32), sy, zy)


@operator("com.microsoft:MatMulIntegerToFloat", keys="")
def matmul_to_float(
    call: Call, a: Value, b: Value, sa: Value, sb: Value, za: Value = None, zb: Value = None,
    bias: Value = None,
) -> Value:  # fmt: skip
    """Multiply matrices of integers; float32."""
    product = array(matmul_integer(call, a, b, za, zb)) * (array(sa) * array(sb))
    return (product if bias is None else product + array(bias)).astype(np.float32)


@operator("com.microsoft:DynamicQuantizeMatMul", keys="")
def dynamic_matmul(
    call: Call, a: Value, b: Value, sb: Value, zb: Value = None, bias: Value = None
) -> Value:
    """Quantise a by its own range, and multiply it with integers; float32."""
    x, scale, zero = dynamic_quantize_linear(call, a)
    return matmul_to_float(call, x, b, scale, sb, zero, zb, bias)
