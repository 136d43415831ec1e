"""Elementary functions, element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from daskdl import ops
from daskdl.errors import SettingsError
from daskdl.nn.operators.table import (
    TABLE,
    Call,
    Value,
    array,
    dtype_of,
    elementwise,
    is_float,
    operator,
    shape_of,
)

#: Functions of daskdl.ops by ONNX' names.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Abs": ops.abs,
    "Acos": ops.arccos,
    "Acosh": ops.arccosh,
    "Asin": ops.arcsin,
    "Asinh": ops.arcsinh,
    "Atan": ops.arctan,
    "Atanh": ops.arctanh,
    "Cos": ops.cos,
    "Cosh": ops.cosh,
    "Erf": ops.erf,
    "Exp": ops.exp,
    "HardSwish": ops.hard_swish,
    "Log": ops.log,
    "Neg": ops.negative,
    "Sigmoid": ops.sigmoid,
    "Sin": ops.sin,
    "Sinh": ops.sinh,
    "Softplus": ops.softplus,
    "Softsign": ops.softsign,
    "Sqrt": ops.sqrt,
    "Tan": ops.tan,
    "Tanh": ops.tanh,
}

#: Functions whose gradient is zero where it exists: no gradient is passed on.
_STEPS: dict[str, Callable[..., Any]] = {
    "BitwiseNot": np.invert,
    "Ceil": np.ceil,
    "Floor": np.floor,
    "IsNaN": np.isnan,
    "Not": np.logical_not,
    "Round": np.rint,
    "Sign": np.sign,
}


def _function(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda call, x: elementwise(function, x)


def _step(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda call, x: function(array(x))


TABLE.update({name: _function(function) for name, function in FUNCTIONS.items()})
TABLE.update({name: _step(function) for name, function in _STEPS.items()})


@operator("Relu")
def relu(call: Call, x: Value) -> Value:
    """max(x, 0), also of whole numbers."""
    return elementwise(ops.relu, x) if is_float(x) else np.maximum(array(x), 0)


@operator("Identity")
def identity(call: Call, x: Value) -> Value:
    """Return x."""
    return x


@operator("Reciprocal")
def reciprocal(call: Call, x: Value) -> Value:
    """1 / x."""
    return elementwise(lambda t: ops.divide(1.0, t), x)


@operator("IsInf")
def is_inf(call: Call, x: Value) -> Value:
    """Return whether x is infinite, with one of the wanted signs."""
    numbers = array(x)
    up = bool(call.get("detect_positive", 1)) & np.isposinf(numbers)
    return up | (bool(call.get("detect_negative", 1)) & np.isneginf(numbers))


@operator("LeakyRelu")
def leaky_relu(call: Call, x: Value) -> Value:
    """LeakyRelu: ``x`` where positive, ``alpha * x`` elsewhere."""
    return elementwise(ops.leaky_relu, x, slope=call.get("alpha", 0.01))


@operator("Elu")
def elu(call: Call, x: Value) -> Value:
    """Elu: ``x`` where positive, ``alpha * (exp(x) - 1)`` elsewhere."""
    return elementwise(ops.elu, x, alpha=call.get("alpha", 1.0))


@operator("Celu")
def celu(call: Call, x: Value) -> Value:
    """Celu: ``x`` where positive, ``alpha * (exp(x / alpha) - 1)`` elsewhere (arXiv 1704.07483)."""
    alpha = call.get("alpha", 1.0)
    return elementwise(lambda t: alpha * ops.elu(t * (1 / alpha), alpha=1.0), x)


@operator("Selu")
def selu(call: Call, x: Value) -> Value:
    """Scaled ELU (arXiv 1706.02515)."""
    alpha = call.get("alpha", 1.6732632423543772)
    gamma = call.get("gamma", 1.0507009873554805)
    return elementwise(lambda t: gamma * ops.elu(t, alpha=alpha), x)


@operator("Mish")
def mish(call: Call, x: Value) -> Value:
    """Mish: ``x * tanh(softplus(x))`` (arXiv 1908.08681)."""
    return elementwise(lambda t: t * ops.tanh(ops.softplus(t)), _tensor(x))


@operator("Swish")
def swish(call: Call, x: Value) -> Value:
    """Swish: ``x * sigmoid(alpha * x)``."""
    return elementwise(lambda t: t * ops.sigmoid(call.get("alpha", 1.0) * t), _tensor(x))


@operator("SwiGLU")
def swiglu(call: Call, gate: Value, x: Value) -> Value:
    """Swish of a gate, times x (arXiv 2002.05202)."""
    return swish(call, gate) * x


@operator("Gelu")
def gelu(call: Call, x: Value) -> Value:
    """Gelu: ``x`` times the normal distribution function, or its approximation by a tanh."""
    return elementwise(ops.gelu, x, approximate=call.get("approximate", "none"))


@operator("HardSigmoid")
def hard_sigmoid(call: Call, x: Value) -> Value:
    """HardSigmoid: ``alpha * x + beta``, limited to 0 and 1."""
    alpha, beta = call.get("alpha", 0.2), call.get("beta", 0.5)
    return elementwise(lambda t: ops.clip(alpha * t + beta, low=0, high=1), _tensor(x))


@operator("Shrink")
def shrink(call: Call, x: Value) -> Value:
    """Shrink: ``x`` moved towards 0 by ``bias`` if beyond ``lambd``, else 0."""
    edge, bias = call.get("lambd", 0.5), call.get("bias", 0.0)
    numbers = array(x)
    if numbers.dtype.kind != "f":
        moved = np.where(
            numbers > edge, numbers - bias, np.where(numbers < -edge, numbers + bias, 0)
        )
        return moved.astype(numbers.dtype)
    return ops.where(numbers > edge, x - bias, ops.where(numbers < -edge, x + bias, 0.0 * numbers))


@operator("ThresholdedRelu")
def thresholded_relu(call: Call, x: Value) -> Value:
    """ThresholdedRelu: ``x`` where above ``alpha``, 0 elsewhere."""
    return elementwise(ops.threshold, x, threshold=call.get("alpha", 1.0))


@operator("PRelu")
def prelu(call: Call, x: Value, slope: Value) -> Value:
    """PRelu: ``x`` where positive, a learned ``slope * x`` elsewhere (arXiv 1502.01852)."""
    shape, behind = shape_of(slope), len(shape_of(x)) - 2
    if call.opset < 7 and len(shape) == 1 and behind > 0:  # one for each channel
        slope = ops.reshape(slope, shape=(*shape, *(1,) * behind))
    return ops.where(array(x) >= 0, x, ops.multiply(x, slope))


@operator("Clip")
def clip(call: Call, x: Value, low: Value = None, high: Value = None) -> Value:
    """Clip: ``x`` limited to ``low`` and ``high``."""
    least = call.get("min") if low is None else array(low).reshape(-1)[0]
    most = call.get("max") if high is None else array(high).reshape(-1)[0]
    if not is_float(x):
        return np.clip(array(x), least, most) if (least, most) != (None, None) else x
    if least is not None and most is not None and least > most:
        return elementwise(lambda t: ops.minimum(t, float(most)) * 0.0 + float(most), _tensor(x))
    low, high = (None if v is None else float(v) for v in (least, most))
    return elementwise(ops.clip, x, low=low, high=high)


@operator("Dropout")
def dropout(call: Call, x: Value, ratio: Value = None, training: Value = None) -> Value:
    """Set a share of x to 0 in training; return x and a mask of ones in inference."""
    from daskdl.nn.core.state import next_draw

    rate = call.get("ratio", 0.5) if ratio is None else float(array(ratio).reshape(-1)[0])
    if not 0 <= rate < 1:
        raise SettingsError(f"Dropout: expected 0 <= ratio < 1, found {rate}")
    if call.training and rate and training is None and is_float(x):
        seed, counter = next_draw()
        x = ops.dropout(x, rate=rate, seed=seed, counter=counter)
        return x, array(x) != 0
    if training is not None and bool(array(training).reshape(-1)[0]) and rate:
        # As in ONNX's reference: numpy's old generator with the node's seed.
        mask = np.random.RandomState(call.get("seed", 0)).uniform(0, 1, shape_of(x)) >= rate
        return ops.multiply(x, (mask / (1 - rate)).astype(dtype_of(x))), mask
    return x, np.ones(shape_of(x), bool)


def _tensor(x: Value) -> Value:
    return x if hasattr(x, "backward") else ops.reshape(x, shape=shape_of(x))
