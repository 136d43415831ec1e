"""Quantised operators of the standard and of onnxruntime; none has a gradient.

Operators of onnxruntime dequantise their inputs, compute in float32 and quantise the result
(https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md).
:mod:`daskdl.nn.core.int8_steps` replaces quantised nodes by the int8 steps.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from daskdl import ops
from daskdl.errors import SettingsError
from daskdl.kernels.products.matmul import matmul
from daskdl.nn.inference.pending import Pending
from daskdl.nn.operators.convolution import conv, windows
from daskdl.nn.operators.shapes import dtype_of
from daskdl.nn.operators.table import (
    TABLE,
    Call,
    Operator,
    Value,
    array,
    channels_second,
    elementwise,
    operator,
)
from daskdl.tensor import Array


def _spread(part: Array, x: Array, call: Call) -> Array:
    """Return a scale or zero point for each element: one for all, along an axis, or in blocks."""
    if part.size == 1 and part.ndim < 2:
        return part.reshape(())
    axis = call.get("axis", 1) % x.ndim
    block = call.get("block_size", 0)
    if part.ndim == 1 and not block:
        return part.reshape(-1, *(1,) * (x.ndim - axis - 1))
    repeated = np.repeat(part, block or -(-x.shape[axis] // part.shape[axis]), axis)
    return repeated[(*(slice(None),) * axis, slice(x.shape[axis]))]


def _saturated(x: Array, dtype: Any) -> Array:
    info = np.iinfo(dtype)
    return np.clip(x, info.min, info.max).astype(dtype)


@operator("QuantizeLinear")
@operator("com.microsoft:QuantizeLinear", keys="axis")
def quantize_linear(call: Call, x: Value, scale: Value, zero: Value = None) -> Value:
    """``round(x / scale) + zero``, limited to the integers' range."""
    values, steps = array(x), _spread(array(scale), array(x), call)
    dtype = np.uint8 if zero is None else array(zero).dtype
    dtype = dtype_of(call, dtype, "output_dtype") if call.get("output_dtype") else dtype
    if np.dtype(dtype).kind not in "iu":
        raise SettingsError(f"QuantizeLinear: expected integers, found {np.dtype(dtype)}")
    shift = 0 if zero is None else _spread(array(zero), values, call).astype(np.int64)
    return _saturated(np.rint(values / steps) + shift, dtype)


@operator("DequantizeLinear")
@operator("com.microsoft:DequantizeLinear", keys="axis")
def dequantize_linear(call: Call, x: Value, scale: Value, zero: Value = None) -> Value:
    """``(x - zero) * scale``."""
    integers, steps = array(x), _spread(array(scale), array(x), call)
    shift = 0 if zero is None else _spread(array(zero), integers, call).astype(np.int64)
    dtype = array(scale).dtype
    dtype = dtype_of(call, dtype, "output_dtype") if call.get("output_dtype") else dtype
    return ((integers.astype(np.int64) - shift) * steps).astype(dtype)


@operator("DynamicQuantizeLinear")
def dynamic_quantize_linear(call: Call, x: Value) -> Value:
    """Quantize to uint8 by the range of x itself; also return scale and zero point."""
    values = array(x)
    low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
    scale = np.float32((high - low) / 255 or 1.0)
    zero = _saturated(np.rint(-low / scale), np.uint8)
    return _saturated(np.rint(values / scale) + zero, np.uint8), scale, zero


def centred(x: Value, zero: Value, axis: int | None = None) -> Array:
    """Return integers minus their zero point, float64; one for all, or one along an axis."""
    integers = array(x).astype(np.float64)
    if zero is None:
        return integers
    shift = array(zero).astype(np.float64)
    if shift.ndim == 1 and shift.size > 1 and axis is not None:
        shift = shift.reshape(-1, *(1,) * (integers.ndim - axis - 1))
    return integers - (shift if shift.size > 1 else shift.reshape(()))


@operator("MatMulInteger")
def matmul_integer(call: Call, a: Value, b: Value, za: Value = None, zb: Value = None) -> Value:
    """Multiply matrices of integers minus their zero points; int32."""
    rows = array(a).ndim - 2
    return matmul(centred(a, za, rows), centred(b, zb)).astype(np.int32)


@operator("ConvInteger")
def conv_integer(call: Call, x: Value, w: Value, zx: Value = None, zw: Value = None) -> Value:
    """Cross-correlate integers minus their zero points; int32."""
    return np.rint(array(conv(call, centred(x, zx), centred(w, zw, 0)))).astype(np.int32)


def _scaled(product: Array, sx: Value, sw: Array, sy: Value, zy: Value) -> Array:
    """Quantize a product of integers by its own and its factors' scales."""
    scale = array(sx).astype(np.float64) * sw / array(sy)
    return _saturated(np.rint(product * scale) + array(zy).astype(np.int64), array(zy).dtype)


@operator("QLinearMatMul")
def qlinear_matmul(
    call: Call, a: Value, sa: Value, za: Value, b: Value, sb: Value, zb: Value, sy: Value, zy: Value
) -> Value:
    """Multiply matrices of integers and quantize the product."""
    return _scaled(matmul(centred(a, za), centred(b, zb)), sa, array(sb), sy, zy)


@operator("QLinearConv")
def qlinear_conv(
    call: Call, x: Value, sx: Value, zx: Value, w: Value, sw: Value, zw: Value, sy: Value,
    zy: Value, bias: Value = None,
) -> Value:  # fmt: skip
    """Cross-correlate integers and quantize the result."""
    y = array(conv(call, centred(x, zx), centred(w, zw, 0)))
    behind = (1,) * (y.ndim - 2)
    if bias is not None:
        y = y + array(bias).reshape(-1, *behind)
    return _scaled(y, sx, array(sw).reshape(-1, *behind), sy, zy)


@operator("Bernoulli", "RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike")
def random(call: Call, x: Value = None) -> Value:
    """Draw normal or uniform numbers, or 1 with the probability x; in training and inference."""
    from daskdl.nn.core.state import generator_of_draw

    shape = call.get("shape") if x is None else array(x).shape
    seed = call.get("seed")
    rng = generator_of_draw() if seed is None else np.random.default_rng(int(abs(seed)))
    dtype = dtype_of(call, np.float32 if x is None else array(x).dtype)
    if call.name == "Bernoulli":
        return (rng.random(shape) < array(x)).astype(dtype)
    if "Normal" in call.name:
        return rng.normal(call.get("mean", 0.0), call.get("scale", 1.0), shape).astype(dtype)
    return rng.uniform(call.get("low", 0.0), call.get("high", 1.0), shape).astype(dtype)


def _real(x: Value, scale: Value, zero: Value = None) -> Array:
    """Return the numbers of integers with one scale, float32."""
    return (centred(x, zero) * array(scale)).astype(np.float32)


def _plain(call: Call, *values: Value) -> Array:
    """Compute the standard operator that gives a quantised one its name."""
    if call.get("channels_last"):
        raise SettingsError(f"{call.name}: expected channels on axis 1, found channels_last")
    name = call.name.removeprefix("com.microsoft:QLinear")
    return array(TABLE[name](replace(call, name=name, opset=call.get("opset", 13)), *values))


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
    """Compute on several (x, scale, zero); the result's scale and zero come last."""
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
    """Quantise a by its own range, and multiply by a matrix of integers; float32."""
    x, scale, zero = dynamic_quantize_linear(call, a)
    return matmul_to_float(call, x, b, scale, sb, zero, zb, bias)


def int8_round(call: Call, x: Value) -> Value:
    """Round x to the numbers of bytes: QuantizeLinear, then DequantizeLinear."""
    settings = {"of_x": call.get("of_x"), "alone": bool(call.get("alone", 0))}
    if isinstance(x, Pending):  # which may have bytes
        return ops.fake_quantize(x, **settings)
    return elementwise(ops.fake_quantize, x, **settings)


def int8_conv(call: Call, x: Value, words: Value, scale: Value, bias: Value = None) -> Value:
    """Cross-correlate (N, C, H, W) with int8 filters ``shape``, (M, H, W, C / groups)."""
    shape = call.get("shape")
    x, settings = windows(call, x, shape[1:3])
    more = {"shape": shape, "of_x": call.get("of_x"), **settings}
    return channels_second(ops.int8_conv2d(x, words, scale, bias, **more))


def int8_linear(call: Call, x: Value, words: Value, scale: Value, bias: Value = None) -> Value:
    """Multiply rows by an int8 matrix ``shape``, (out, in)."""
    more = {"shape": call.get("shape"), "of_x": call.get("of_x")}
    return ops.int8_linear(x, words, scale, bias, **more)


#: Steps by names that no file can have: :data:`TABLE`, which checks files, does not have them.
STEPS: dict[str, Operator] = {
    "int8:Round": int8_round,
    "int8:Conv": int8_conv,
    "int8:Linear": int8_linear,
}
