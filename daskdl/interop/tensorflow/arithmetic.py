"""TensorFlow's arithmetic: functions of numbers, products, reductions."""

from __future__ import annotations

import numpy as np

from daskdl.interop.channels import Value
from daskdl.interop.tensorflow.images import into_convolution
from daskdl.interop.tensorflow.net import Call, Given, operator

_SAME = {
    "Abs": "Abs", "Ceil": "Ceil", "Cos": "Cos", "Erf": "Erf", "Exp": "Exp", "Floor": "Floor",
    "Log": "Log", "LogicalNot": "Not", "Neg": "Neg", "Reciprocal": "Reciprocal", "Relu": "Relu",
    "Round": "Round", "Selu": "Selu", "Sigmoid": "Sigmoid", "Sign": "Sign", "Sin": "Sin",
    "Softplus": "Softplus", "Softsign": "Softsign", "Sqrt": "Sqrt", "Tanh": "Tanh",
}  # fmt: skip
_TWO = {
    "Add": "Add", "AddV2": "Add", "Div": "Div", "Equal": "Equal", "FloorMod": "Mod",
    "Greater": "Greater", "GreaterEqual": "GreaterOrEqual", "Less": "Less",
    "LessEqual": "LessOrEqual", "LogicalAnd": "And", "LogicalOr": "Or", "Maximum": "Max",
    "Minimum": "Min", "Mul": "Mul", "Pow": "Pow", "RealDiv": "Div", "Sub": "Sub",
}  # fmt: skip
_REDUCTIONS = {
    "Max": "ReduceMax", "Mean": "ReduceMean", "Min": "ReduceMin", "Prod": "ReduceProd",
    "Sum": "ReduceSum",
}  # fmt: skip


@operator("Identity", "StopGradient", "CheckNumerics", "Snapshot", "PreventGradient",
          "PlaceholderWithDefault")  # fmt: skip
def identity(call: Call) -> Given:
    """Return the input itself."""
    return call.given[0] if call.is_array(0) else call.value(0)


@operator(*_SAME)
def elementary(call: Call) -> Value:
    """Compute a function of each number."""
    x = call.value(0)
    return call.build.made(x, _SAME[call.node.operator], x.name, name=call.node.name)


@operator("Relu6", "LeakyRelu", "Elu")
def rectified(call: Call) -> Value:
    """Keep what is positive, to 6 of Relu6."""
    x, build, name = call.value(0), call.build, call.node.name
    if call.node.operator == "Relu6":
        return build.made(x, "Clip", x.name, build.constant(0), build.constant(6), name=name)
    if call.node.operator == "Elu":
        return build.made(x, "Elu", x.name, name=name)
    return build.made(x, "LeakyRelu", x.name, alpha=call.node.number("alpha", 0.2), name=name)


@operator("Rsqrt", "Square")
def power(call: Call) -> Value:
    """Compute one over the root, or the square."""
    x, build = call.value(0), call.build
    if call.node.operator == "Square":
        return build.made(x, "Mul", x.name, x.name, name=call.node.name)
    return build.made(x, "Reciprocal", build.node("Sqrt", x.name), name=call.node.name)


@operator("SquaredDifference")
def squared_difference(call: Call) -> Value:
    """Compute the square of a difference."""
    found = call.build.broadcast(call.value(0), call.value(1), "Sub", f"{call.node.name}/sub")
    return call.build.made(found, "Mul", found.name, found.name, name=call.node.name)


@operator(*_TWO)
def binary(call: Call) -> Value:
    """Compute an operator of two values; numbers added to a convolution become its bias."""
    a, b = call.value(0), call.value(1)
    if _TWO[call.node.operator] == "Add" and a.second and call.is_array(1):
        bias = call.array(1, "a bias")
        joined = into_convolution(call, a, bias) if bias.dtype.kind == "f" else None
        if joined is not None:
            return joined
    return call.build.broadcast(a, b, _TWO[call.node.operator], call.node.name)


@operator("AddN")
def total(call: Call) -> Value:
    """Add several values up."""
    found = call.value(0)
    for i in range(1, len(call.given)):
        found = call.build.broadcast(found, call.value(i), "Add", call.node.name)
    return found


@operator("MatMul", "BatchMatMul", "BatchMatMulV2")
def matmul(call: Call) -> Value:
    """Multiply matrices, either of them transposed or not."""
    a, b, build = call.build.last(call.value(0)), call.value(1), call.build
    if call.is_array(1) and call.array(1, "weights").dtype.kind == "f":
        weights = call.array(1, "weights")
        b = Value(call.net.held(weights, call.names[1]), weights.ndim)
    b = build.last(b)
    if call.node.operator == "MatMul":
        turn = call.node.flag("transpose_a"), call.node.flag("transpose_b")
        if turn == (False, False):
            return Value(build.node("MatMul", a.name, b.name, name=call.node.name), 2)
        sides = {"transA": int(turn[0]), "transB": int(turn[1])}
        return Value(build.node("Gemm", a.name, b.name, name=call.node.name, **sides), 2)
    names = []
    for value, side in ((a, "adj_x"), (b, "adj_y")):
        if call.node.flag(side):
            if value.rank is None:
                call.node.fail(f"{side}: expected a known number of axes")
            order = (*range(value.rank - 2), value.rank - 1, value.rank - 2)
            value = value._replace(name=build.transposed(value.name, order))
        names.append(value.name)
    return Value(build.node("MatMul", *names, name=call.node.name), a.rank)


@operator(*_REDUCTIONS)
def reduction(call: Call) -> Value:
    """Reduce axes."""
    keep = call.node.flag("keep_dims") or call.node.flag("keepdims")
    axes, x = call.integers(1, "axes"), call.value(0)
    rank = x.rank
    if rank is not None and any(not -rank <= a < rank for a in axes):
        call.node.fail(f"expected axes of {rank}, found {axes}")
    return call.build.reduced(x, _REDUCTIONS[call.node.operator], axes, keep, call.node.name)


@operator("Softmax", "LogSoftmax")
def softmax(call: Call) -> Value:
    """Softmax along the last axis."""
    x = call.value(0)
    axis = 1 if x.second else -1
    return call.build.made(x, call.node.operator, x.name, axis=axis, name=call.node.name)


@operator("ArgMax", "ArgMin")
def argmax(call: Call) -> Value:
    """Say where the largest, or smallest, number along an axis is."""
    (axis,) = call.integers(1, "an axis")
    x = call.build.last(call.value(0))
    found = call.build.node(call.node.operator, x.name, axis=axis, keepdims=0, name=call.node.name)
    return Value(found, None if x.rank is None else x.rank - 1)


@operator("Cast")
def cast(call: Call) -> Value:
    """Return another dtype."""
    from daskdl.nn.operators.shapes import DTYPES

    dtype = call.node.dtype("DstT")
    number = next(n for n, d in DTYPES.items() if np.dtype(d) == dtype.newbyteorder("="))
    x = call.value(0)
    number = {10: 1, 6: 7}.get(number, number)  # float16 as float32, int32 as int64
    return call.build.made(x, "Cast", x.name, to=number, name=call.node.name)
