"""Arithmetic, comparisons and logic of two or more arrays, broadcast."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from daskdl import ops
from daskdl.errors import SettingsError
from daskdl.kernels.products.matmul import matmul as multiply_matrices
from daskdl.nn.operators.table import (
    TABLE,
    Call,
    Value,
    array,
    elementwise,
    is_float,
    operator,
    shape_of,
)

#: Comparisons and logic have no gradient.
_LOGIC: dict[str, Callable[..., Any]] = {
    "And": np.logical_and,
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
    "Equal": np.equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Or": np.logical_or,
    "Xor": np.logical_xor,
}
_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "Add": ops.add,
    "Mul": ops.multiply,
    "Sub": ops.subtract,
}


def placed(call: Call, a: Value, b: Value) -> Value:
    """Return b with its axes placed from ``axis`` on, as broadcasting before version 7 did."""
    axis = call.get("axis")
    if call.opset >= 7 or axis is None or not call.get("broadcast"):
        return b
    second, ndim = array(b), len(shape_of(a))
    behind = ndim - axis % ndim - second.ndim
    return ops.reshape(b, shape=(*second.shape, *(1,) * behind)) if behind > 0 else b


def _arithmetic(function: Callable[..., Any]) -> Callable[..., Any]:
    def compute(call: Call, a: Value, b: Value) -> Value:
        b = placed(call, a, b)
        if shape_of(a) == shape_of(b):
            return elementwise(function, a, b)
        return function(a, b)

    return compute


def _logic(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda call, a, b: function(array(a), array(placed(call, a, b)))


TABLE.update({name: _arithmetic(function) for name, function in _ARITHMETIC.items()})
TABLE.update({name: _logic(function) for name, function in _LOGIC.items()})


@operator("Div")
def div(call: Call, a: Value, b: Value) -> Value:
    """Divide a by b; quotients of integers are rounded towards 0."""
    b = placed(call, a, b)
    if is_float(a):
        with np.errstate(divide="ignore", invalid="ignore"):
            return ops.divide(a, b)
    x, y = array(a), array(b)
    if not y.all():
        raise SettingsError("Div: expected divisors other than 0 of whole numbers")
    quotient = np.floor_divide(x, y)
    return quotient + ((np.remainder(x, y) != 0) & ((x < 0) != (y < 0))).astype(x.dtype)


@operator("Mod")
def mod(call: Call, a: Value, b: Value) -> Value:
    """Remainder of a division, with the sign of b or, with ``fmod``, of a."""
    x, y = array(a), array(b)
    if not is_float(a):
        return (np.fmod if call.get("fmod", 0) else np.mod)(x, y)
    return ops.remainder(a, b, truncated=bool(call.get("fmod", 0)))


@operator("Pow")
def power(call: Call, a: Value, b: Value) -> Value:
    """Raise a to the power b, in the dtype of a."""
    b, exponent = placed(call, a, b), array(b)
    is_constant = not hasattr(b, "backward") or not (b.requires_grad or b._node is not None)
    if exponent.size == 1 and exponent.ndim <= len(shape_of(a)) and is_float(a) and is_constant:
        return elementwise(functools.partial(ops.power, exponent=float(exponent.reshape(-1)[0])), a)
    return ops.pow(a, b)


@operator("BitShift")
def bit_shift(call: Call, a: Value, b: Value) -> Value:
    """Shift the bits of a by b places; shifts beyond the number of bits give 0."""
    shift = np.left_shift if call.get("direction") == "LEFT" else np.right_shift
    return shift(array(a), array(b))


@operator("Max", "Min")
def extreme(call: Call, *values: Value) -> Value:
    """Return the largest or the smallest of all, broadcast; NaN wins."""
    highest = call.name == "Max"
    if is_float(values[0]):
        function: Callable[..., Any] = ops.maximum if highest else ops.minimum
        first = (
            values[0] if len(values) > 1 else ops.reshape(values[0], shape=array(values[0]).shape)
        )
        return functools.reduce(function, values[1:], first)
    return functools.reduce(np.maximum if highest else np.minimum, map(array, values))


@operator("Sum", "Mean")
def total(call: Call, *values: Value) -> Value:
    """Add all up, broadcast; a mean divides by their number."""
    first = ops.reshape(values[0], shape=array(values[0]).shape) if len(values) == 1 else values[0]
    y = functools.reduce(ops.add, values[1:], first)
    return y * (1 / len(values)) if call.name == "Mean" else y


@operator("Where")
def where(call: Call, condition: Value, a: Value, b: Value) -> Value:
    """Take a where the condition holds and b elsewhere."""
    if is_float(a):
        return ops.where(array(condition), a, b)
    return np.where(array(condition), array(a), array(b))


@operator("MatMul")
def matmul(call: Call, a: Value, b: Value) -> Value:
    """Multiply matrices or vectors as numpy's ``matmul``."""
    x, y = array(a), array(b)
    if not is_float(a):
        return multiply_matrices(x, y)
    if x.ndim == 1:
        a = ops.reshape(a, shape=(1, *x.shape))
    if y.ndim == 1:
        b = ops.reshape(b, shape=(*y.shape, 1))
    z = ops.matmul(a, b)
    shape = z.shape[:-2] + z.shape[-2:][x.ndim == 1 :][: 2 - (x.ndim == 1) - (y.ndim == 1)]
    return ops.reshape(z, shape=shape) if 1 in (x.ndim, y.ndim) else z


@operator("Gemm")
def gemm(call: Call, a: Value, b: Value, c: Value = None) -> Value:
    """``alpha * A @ B + beta * C``, with A and B transposed if the attributes say so."""
    if not is_float(a):
        x = array(a).T if call.get("transA", 0) else array(a)
        y = array(b).T if call.get("transB", 0) else array(b)
        z = call.get("alpha", 1.0) * multiply_matrices(x, y)
        z = z if c is None else z + call.get("beta", 1.0) * array(c)
        return z.astype(x.dtype)
    a = ops.transpose(a, axes=(1, 0)) if call.get("transA", 0) else a
    b = ops.transpose(b, axes=(1, 0)) if call.get("transB", 0) else b
    product = ops.matmul(a, b)
    alpha, beta = call.get("alpha", 1.0), call.get("beta", 1.0)
    product = product if alpha == 1 else product * alpha
    if c is None or not beta:
        return product
    return product + (c if beta == 1 else ops.multiply(c, beta))


@operator("Einsum")
def einsum(call: Call, *values: Value) -> Value:
    """Sum products by Einstein's convention."""
    return ops.einsum(*values, equation=call.get("equation"))


@operator("CumSum", "CumProd")
def cumulative(call: Call, x: Value, axis: Value) -> Value:
    """Cumulative sum or product along an axis."""
    function = ops.cumsum if call.name == "CumSum" else ops.cumprod
    return function(
        x,
        axis=int(array(axis).reshape(-1)[0]),
        exclusive=bool(call.get("exclusive", 0)),
        reverse=bool(call.get("reverse", 0)),
    )


@operator("Det")
def det(call: Call, x: Value) -> Value:
    """Return the determinants of (..., M, M)."""
    return ops.det(x)
