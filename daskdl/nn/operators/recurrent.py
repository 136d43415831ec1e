"""RNN, LSTM and GRU as ONNX has them: both directions, initial states, other activations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from daskdl import ops
from daskdl.errors import SettingsError
from daskdl.nn.operators.table import TABLE, Call, Value, array, operator

_WITH_ALPHA = ("Elu", "HardSigmoid", "LeakyRelu", "ThresholdedRelu")


def _activations(call: Call, default: tuple[str, ...], directions: int) -> list[list[Any]]:
    """Return the activation functions of each direction."""
    names = [
        n.decode() if isinstance(n, bytes) else n
        for n in call.get("activations", default * directions)
    ]
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


def _over(
    call: Call, x: Value, weight: Value, lengths: Value, states: tuple[Value, ...], one: Any
) -> Any:
    """Run each direction and put the results together as ONNX has them."""
    batch_first = bool(call.get("layout", 0))
    if not batch_first:
        x = ops.transpose(x, axes=(1, 0, 2))
    direction = call.get("direction", "forward")
    direction = direction.decode() if isinstance(direction, bytes) else direction
    count = array(weight).shape[0]
    outputs: list[Any] = []
    lasts: list[list[Any]] = [[] for _ in states]
    for d in range(count):
        first = [
            None if s is None else ops.take(s, index=(slice(None), d) if batch_first else (d,))
            for s in states
        ]
        reverse = direction == "reverse" or d == 1
        y, *last = one(x, first, d, reverse, None if lengths is None else array(lengths))
        outputs.append(y)
        for held, state in zip(lasts, last, strict=True):
            held.append(state)
    together = ops.stack(*outputs, axis=2)  # (N, T, directions, C)
    if not batch_first:
        together = ops.transpose(together, axes=(1, 2, 0, 3))
    return together, *(ops.stack(*held, axis=1 if batch_first else 0) for held in lasts)


def _stepwise(
    x: Value, states: list[Any], step: Any, reverse: bool, lengths: Any, channels: int
) -> tuple[Any, ...]:
    """Run ``step`` over time: the plain way, for settings that the fast operations lack."""
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


def _default(call: Call) -> bool:
    return not any(call.get(name) for name in ("activations", "clip", "input_forget"))


@operator("RNN")
def rnn(
    call: Call,
    x: Value,
    weight: Value,
    recurrent: Value,
    bias: Value = None,
    lengths: Value = None,
    h: Value = None,
) -> Value:
    """H = f(W x + R h + b)."""
    count = array(weight).shape[0]
    functions = _activations(call, ("Tanh",), count)
    channels = array(recurrent).shape[-1]

    def one(x: Any, first: Any, d: int, reverse: bool, sizes: Any) -> Any:
        w, r = (_gates(v, (0,), d) for v in (weight, recurrent))
        bi, bs = _biases(bias, (0,), d)
        total = None if bi is None else bi + bs
        if _default(call):
            return ops.rnn(x, first[0], w, r, total, lengths=sizes, reverse=reverse)

        def step(now: Any, h: Any) -> Any:
            sums = ops.linear(now, w, total) + ops.linear(h, r, None)
            return (functions[d][0](_clipped(call, sums)),)

        return _stepwise(x, first, step, reverse, sizes, channels)

    return _over(call, x, weight, lengths, (h,), one)


@operator("LSTM")
def lstm(
    call: Call,
    x: Value,
    weight: Value,
    recurrent: Value,
    bias: Value = None,
    lengths: Value = None,
    h: Value = None,
    c: Value = None,
    peepholes: Value = None,
) -> Value:
    """Long short-term memory; ONNX has its gates in the order input, output, forget, cell."""
    count, channels = array(weight).shape[0], array(recurrent).shape[-1]
    functions = _activations(call, ("Sigmoid", "Tanh", "Tanh"), count)
    order = (0, 2, 3, 1)

    def one(x: Any, first: Any, d: int, reverse: bool, sizes: Any) -> Any:
        w, r = (_gates(v, order, d) for v in (weight, recurrent))
        bi, bs = _biases(bias, order, d)
        total = None if bi is None else bi + bs
        peeps = None
        if peepholes is not None:  # input, output, forget -> input, forget, output
            peeps = ops.reshape(_gates(peepholes, (0, 2, 1), d), shape=(3, channels))
        if _default(call):
            return ops.lstm(x, *first, w, r, total, peeps, lengths=sizes, reverse=reverse)
        f, g, k = functions[d]

        def step(now: Any, h: Any, c: Any) -> Any:
            sums = ops.linear(now, w, total) + ops.linear(h, r, None)
            i, forget, new, out = ops.split(sums, sizes=(channels,) * 4, axis=1)
            if peeps is not None:
                i, forget = i + peeps[0] * c, forget + peeps[1] * c
            i, forget = f(_clipped(call, i)), f(_clipped(call, forget))
            forget = 1.0 - i if call.get("input_forget") else forget
            c = forget * c + i * g(_clipped(call, new))
            out = out if peeps is None else out + peeps[2] * c
            return f(_clipped(call, out)) * k(c), c

        return _stepwise(x, first, step, reverse, sizes, channels)

    return _over(call, x, weight, lengths, (h, c), one)


@operator("GRU")
def gru(
    call: Call,
    x: Value,
    weight: Value,
    recurrent: Value,
    bias: Value = None,
    lengths: Value = None,
    h: Value = None,
) -> Value:
    """Gated recurrent unit; ONNX has its gates in the order update, reset, new."""
    count, channels = array(weight).shape[0], array(recurrent).shape[-1]
    functions = _activations(call, ("Sigmoid", "Tanh"), count)
    order = (1, 0, 2)
    after = bool(call.get("linear_before_reset", 0))

    def one(x: Any, first: Any, d: int, reverse: bool, sizes: Any) -> Any:
        w, r = (_gates(v, order, d) for v in (weight, recurrent))
        bi, bs = _biases(bias, order, d)
        if after and _default(call):
            return ops.gru(x, first[0], w, r, bi, bs, lengths=sizes, reverse=reverse)
        parts = ops.split(r, sizes=(channels,) * 3, axis=0)
        shift = (None,) * 3 if bs is None else ops.split(bs, sizes=(channels,) * 3, axis=0)
        f, g = functions[d]

        def step(now: Any, h: Any) -> Any:
            sums = ops.linear(now, w, bi)
            reset, update, new = ops.split(sums, sizes=(channels,) * 3, axis=1)
            reset = f(_clipped(call, reset + ops.linear(h, parts[0], shift[0])))
            update = f(_clipped(call, update + ops.linear(h, parts[1], shift[1])))
            inner = (
                reset * ops.linear(h, parts[2], shift[2])
                if after
                else ops.linear(reset * h, parts[2], shift[2])
            )
            new = g(_clipped(call, new + inner))
            return ((1.0 - update) * new + update * h,)

        return _stepwise(x, first, step, reverse, sizes, channels)

    return _over(call, x, weight, lengths, (h,), one)
