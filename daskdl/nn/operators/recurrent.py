"""ONNX's RNN, LSTM and GRU: both directions, initial states, other activations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from daskdl import ops
from daskdl.errors import SettingsError
from daskdl.nn.operators.table import TABLE, Call, Value, array, operator

#: For each operator, the order in which daskdl's operation takes ONNX's gates, and the default
#: activations. ONNX's order is input, output, forget, cell (LSTM), and update, reset, new (GRU).
_KINDS: dict[str, tuple[tuple[int, ...], tuple[str, ...]]] = {
    "RNN": ((0,), ("Tanh",)),
    "LSTM": ((0, 2, 3, 1), ("Sigmoid", "Tanh", "Tanh")),
    "GRU": ((1, 0, 2), ("Sigmoid", "Tanh")),
}
_WITH_ALPHA = ("Elu", "HardSigmoid", "LeakyRelu", "ThresholdedRelu")


def _activations(call: Call, default: tuple[str, ...], directions: int) -> list[list[Any]]:
    """Return the activation functions of each direction."""
    names = call.get("activations", default * directions)
    alphas, betas = list(call.get("activation_alpha", ())), list(call.get("activation_beta", ()))
    functions: list[Any] = []
    for name in names:
        settings: dict[str, float] = {}
        if name in _WITH_ALPHA and alphas:
            settings["alpha"] = alphas.pop(0)
        if name == "HardSigmoid" and betas:
            settings["beta"] = betas.pop(0)
        if name == "Affine":
            a, b = alphas.pop(0) if alphas else 1.0, betas.pop(0) if betas else 0.0
            functions.append(lambda x, a=a, b=b: x * a + b)
            continue
        if name == "ScaledTanh":
            a, b = alphas.pop(0) if alphas else 1.0, betas.pop(0) if betas else 1.0
            functions.append(lambda x, a=a, b=b: a * ops.tanh(b * x))
            continue
        if name not in TABLE:
            raise SettingsError(f"{call.name}: there is no activation {name!r}")
        functions.append(_activation(name, settings))
    count = len(default)
    return [functions[i * count : (i + 1) * count] for i in range(directions)]


def _activation(name: str, settings: dict[str, float]) -> Callable[[Any], Any]:
    return lambda x: TABLE[name](Call(name, settings), x)


def _gates(weight: Value, order: tuple[int, ...], direction: int) -> Any:
    """Return one direction's rows with their gates in another order."""
    size = array(weight).shape[1] // len(order)
    part = ops.take(weight, index=(direction,))
    if order == tuple(range(len(order))):
        return part
    pieces = ops.split(part, sizes=(size,) * len(order), axis=0)
    return ops.concatenate(*(pieces[i] for i in order), axis=0)


def _biases(bias: Value, order: tuple[int, ...], direction: int) -> tuple[Any, Any]:
    """Return the input's and the state's biases of one direction."""
    if bias is None:
        return None, None
    half = array(bias).shape[1] // 2
    both = ops.split(bias, sizes=(half, half), axis=1)
    return _gates(both[0], order, direction), _gates(both[1], order, direction)


@operator(*_KINDS)
def recurrent(
    call: Call, x: Value, weight: Value, state_weight: Value, bias: Value = None,
    lengths: Value = None, h: Value = None, c: Value = None, peepholes: Value = None,
) -> Value:  # fmt: skip
    """Run each direction over time and join the results in ONNX's form."""
    order, default = _KINDS[call.name]
    count, channels = array(weight).shape[0], array(state_weight).shape[-1]
    functions = _activations(call, default, count)
    batch_first = bool(call.get("layout", 0))
    if not batch_first:
        x = ops.transpose(x, axes=(1, 0, 2))
    states = (h, c) if call.name == "LSTM" else (h,)
    sizes = None if lengths is None else array(lengths)
    fast = not any(call.get(name) for name in ("activations", "clip", "input_forget"))
    fast = fast and (call.name != "GRU" or bool(call.get("linear_before_reset", 0)))
    outputs: list[Any] = []
    lasts: list[list[Any]] = [[] for _ in states]
    for d in range(count):
        first = [
            None if s is None else ops.take(s, index=(slice(None), d) if batch_first else (d,))
            for s in states
        ]
        w, r = (_gates(v, order, d) for v in (weight, state_weight))
        more: tuple[Any, ...] = _biases(bias, order, d)
        if call.name != "GRU":
            more = (None if bias is None else more[0] + more[1],)
        if call.name == "LSTM":  # peepholes of input, output, forget -> input, forget, output
            turned = None if peepholes is None else _gates(peepholes, (0, 2, 1), d)
            more = (*more, None if turned is None else ops.reshape(turned, shape=(3, channels)))
        reverse = d == 1 or call.get("direction", "forward") == "reverse"
        if fast:
            function: Any = getattr(ops, call.name.lower())
            y, *last = function(x, *first, w, r, *more, lengths=sizes, reverse=reverse)
        else:
            step = _STEPS[call.name](call, functions[d], w, r, *more)
            y, *last = _stepwise(x, first, step, reverse, sizes, channels)
        outputs.append(y)
        for collected, state in zip(lasts, last, strict=True):
            collected.append(state)
    together = ops.stack(*outputs, axis=2)  # (N, T, directions, C)
    if not batch_first:
        together = ops.transpose(together, axes=(1, 2, 0, 3))
    return together, *(ops.stack(*states, axis=1 if batch_first else 0) for states in lasts)


def _stepwise(
    x: Value, states: list[Any], step: Any, reverse: bool, lengths: Any, channels: int
) -> tuple[Any, ...]:
    """Run ``step`` over time, for settings that the fast operations lack."""
    n, steps, _ = array(x).shape
    states = [np.zeros((n, channels), array(x).dtype) if s is None else s for s in states]
    outputs: list[Any] = [None] * steps
    for t in range(steps)[::-1] if reverse else range(steps):
        new = step(ops.take(x, index=(slice(None), t)), *states)
        if lengths is not None:
            inside = (t < lengths)[:, None]
            new = [ops.where(inside, a, b) for a, b in zip(new, states, strict=True)]
            outputs[t] = ops.where(inside, new[0], np.zeros((), array(x).dtype))
        else:
            outputs[t] = new[0]
        states = list(new)
    return ops.stack(*outputs, axis=1), *states


def _clipped(call: Call, x: Any) -> Any:
    bound = call.get("clip")
    return x if not bound else ops.clip(x, low=-bound, high=bound)


def _rnn_step(call: Call, functions: list[Any], w: Any, r: Any, bias: Any) -> Any:
    """H = f(W x + R h + b)."""

    def step(now: Any, h: Any) -> Any:
        sums = ops.linear(now, w, bias) + ops.linear(h, r, None)
        return (functions[0](_clipped(call, sums)),)

    return step


def _lstm_step(call: Call, functions: list[Any], w: Any, r: Any, bias: Any, peeps: Any) -> Any:
    f, g, k = functions
    channels = array(r).shape[-1]

    def step(now: Any, h: Any, c: Any) -> Any:
        sums = ops.linear(now, w, bias) + ops.linear(h, r, None)
        i, forget, new, out = ops.split(sums, sizes=(channels,) * 4, axis=1)
        if peeps is not None:
            i, forget = i + peeps[0] * c, forget + peeps[1] * c
        i, forget = f(_clipped(call, i)), f(_clipped(call, forget))
        forget = 1.0 - i if call.get("input_forget") else forget
        c = forget * c + i * g(_clipped(call, new))
        out = out if peeps is None else out + peeps[2] * c
        return f(_clipped(call, out)) * k(c), c

    return step


def _gru_step(call: Call, functions: list[Any], w: Any, r: Any, bias: Any, shift: Any) -> Any:
    f, g = functions
    sizes = (array(r).shape[-1],) * 3
    parts = ops.split(r, sizes=sizes, axis=0)
    shifts = (None,) * 3 if shift is None else ops.split(shift, sizes=sizes, axis=0)

    def step(now: Any, h: Any) -> Any:
        reset, update, new = ops.split(ops.linear(now, w, bias), sizes=sizes, axis=1)
        reset = f(_clipped(call, reset + ops.linear(h, parts[0], shifts[0])))
        update = f(_clipped(call, update + ops.linear(h, parts[1], shifts[1])))
        if call.get("linear_before_reset", 0):
            inner = reset * ops.linear(h, parts[2], shifts[2])
        else:
            inner = ops.linear(reset * h, parts[2], shifts[2])
        new = g(_clipped(call, new + inner))
        return ((1.0 - update) * new + update * h,)

    return step


_STEPS: dict[str, Callable[..., Any]] = {"RNN": _rnn_step, "LSTM": _lstm_step, "GRU": _gru_step}
