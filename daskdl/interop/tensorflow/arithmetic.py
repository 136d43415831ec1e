"""TensorFlow's arithmetic: elementwise functions, products, reductions."""

from __future__ import annotations

import functools

import numpy as np

from daskdl.interop.building import Value
from daskdl.interop.layer import clipped, operator_of
from daskdl.interop.tensorflow.images import into_convolution
from daskdl.interop.tensorflow.net import TABLE, Call, Operand, operator

#: Elementwise functions with the same name in ONNX.
_SAME = (
    "Abs", "Ceil", "Cos", "Elu", "Erf", "Exp", "Floor", "Log", "Neg", "Reciprocal", "Relu", "Round",
    "Selu", "Sigmoid", "Sign", "Sin", "Softplus", "Softsign", "Sqrt", "Tanh",
)  # fmt: skip
_TWO = {
    **{kind: kind for kind in ("Add", "Div", "Equal", "Greater", "Less", "Mul", "Pow", "Sub")},
    "AddV2": "Add", "FloorMod": "Mod", "GreaterEqual": "GreaterOrEqual", "LessEqual": "LessOrEqual",
    "LogicalAnd": "And", "LogicalOr": "Or", "Maximum": "Max", "Minimum": "Min", "RealDiv": "Div",
}  # fmt: skip
_REDUCTIONS = ("Max", "Mean", "Min", "Prod", "Sum")


@operator("Identity", "StopGradient", "CheckNumerics", "Snapshot", "PreventGradient",
          "PlaceholderWithDefault")  # fmt: skip
def identity(call: Call) -> Operand:
    """Return the input."""
    return call.operands[0] if call.is_array(0) else call.x


TABLE.update({kind: operator_of(kind) for kind in _SAME})
TABLE["LogicalNot"] = operator_of("Not")
TABLE["LeakyRelu"] = operator_of("LeakyRelu", alpha=("alpha", 0.2))


@operator("Relu6")
def relu6(call: Call) -> Value:
    """Limit numbers to 0 to 6."""
    return clipped(call, 0, 6)


@operator("Rsqrt", "Square")
def power(call: Call) -> Value:
    """Compute 1 / sqrt(x), or the square."""
    x = call.x
    if call.kind == "Square":
        return call.result("Mul", x.name, x.name)
    return call.result("Reciprocal", call.build.node("Sqrt", x.name))


@operator("SquaredDifference")
def squared_difference(call: Call) -> Value:
    """Compute the square of a difference."""
    difference = call.build.broadcast(call.x, call.value(1), "Sub", f"{call.name}/sub")
    return call.result("Mul", difference.name, difference.name, like=difference)


@operator(*_TWO)
def binary(call: Call) -> Value:
    """Compute an operator of two values; a constant added to a convolution becomes its bias."""
    a, b = call.x, call.value(1)
    if _TWO[call.kind] == "Add" and a.second and call.is_array(1):
        bias = call.array(1, "a bias")
        joined = into_convolution(call, a, bias) if bias.dtype.kind == "f" else None
        if joined is not None:
            return joined
    return call.build.broadcast(a, b, _TWO[call.kind], call.name)


@operator("AddN")
def total(call: Call) -> Value:
    """Add several values."""
    values = [call.value(i) for i in range(len(call.operands))] or [call.x]
    return functools.reduce(lambda a, b: call.build.broadcast(a, b, "Add", call.name), values)


@operator("MatMul", "BatchMatMul", "BatchMatMulV2")
def matmul(call: Call) -> Value:
    """Multiply matrices; either may be transposed."""
    a = call.unpermuted()
    if call.is_array(1) and call.array(1, "weights").dtype.kind == "f":
        b = Value(call.weights(1, "weights"), call.array(1, "weights").ndim)
    else:
        b = call.unpermuted(1)
    if call.kind == "MatMul":
        turn = call.flag("transpose_a"), call.flag("transpose_b")
        if turn == (False, False):
            return call.shaped("MatMul", a.name, b.name, rank=2)
        sides = {"transA": int(turn[0]), "transB": int(turn[1])}
        return call.shaped("Gemm", a.name, b.name, rank=2, **sides)
    names = []
    for value, side in ((a, "adj_x"), (b, "adj_y")):
        if call.flag(side):
            if value.rank is None:
                call.fail(f"{side}: expected a known number of axes")
            order = (*range(value.rank - 2), value.rank - 1, value.rank - 2)
            value = value._replace(name=call.build.transposed(value.name, order))
        names.append(value.name)
    return call.shaped("MatMul", *names, rank=a.rank)


@operator(*_REDUCTIONS)
def reduction(call: Call) -> Value:
    """Reduce axes."""
    keep = call.flag("keep_dims") or call.flag("keepdims")
    axes, x = call.integers(1, "axes"), call.x
    rank = x.rank
    if rank is not None and any(not -rank <= a < rank for a in axes):
        call.fail(f"expected axes of {rank}, found {axes}")
    return call.build.reduced(x, f"Reduce{call.kind}", axes, keep, call.name)


@operator("Softmax", "LogSoftmax")
def softmax(call: Call) -> Value:
    """Softmax along the last axis."""
    x = call.x
    axis = 1 if x.second else -1
    return call.result(call.kind, x.name, axis=axis, like=x)


@operator("ArgMax", "ArgMin")
def argmax(call: Call) -> Value:
    """Return the place of the maximum or minimum along an axis."""
    (axis,) = call.integers(1, "an axis")
    x = call.unpermuted()
    rank = None if x.rank is None else x.rank - 1
    return call.shaped(call.kind, x.name, rank=rank, axis=axis, keepdims=0)


@operator("Cast")
def cast(call: Call) -> Value:
    """Convert to another dtype."""
    from daskdl.nn.operators.shapes import DTYPES

    dtype = call.node.dtype("DstT")
    number = next(n for n, d in DTYPES.items() if np.dtype(d) == dtype.newbyteorder("="))
    x = call.x
    number = {10: 1, 6: 7}.get(number, number)  # float16 as float32, int32 as int64
    return call.result("Cast", x.name, to=number, like=x)
