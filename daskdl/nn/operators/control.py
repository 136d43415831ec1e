"""Control flow, sequences and optional values."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl import ops
from daskdl.errors import SettingsError
from daskdl.nn.operators.table import TABLE, Call, Value, array, is_float, operator

#: Most steps of a loop; a longer one is refused as endless.
MOST_STEPS = 1 << 20


def _run(call: Call, body: str, values: dict[str, Any]) -> list[Any]:
    assert call.run is not None
    return list(call.run(call.get(body), values))


@operator("If")
def if_(call: Call, condition: Value) -> Value:
    """Run one of two bodies."""
    branch = "then_branch" if bool(array(condition).reshape(-1)[0]) else "else_branch"
    return tuple(_run(call, branch, {}))


@operator("Loop")
def loop(call: Call, limit: Value, condition: Value, *carried: Value) -> Value:
    """Run a body while a condition holds, up to a limit; stack its results of each step."""
    body, state = call.get("body"), list(carried)
    most = MOST_STEPS if limit is None else int(array(limit).reshape(-1)[0])
    going = condition is None or bool(array(condition).reshape(-1)[0])
    scans: list[list[Any]] = [[] for _ in range(len(body.outputs) - 1 - len(state))]
    i = 0
    while going and i < most:
        if i >= MOST_STEPS:
            raise SettingsError(f"Loop: expected an end before {MOST_STEPS} steps")
        values = dict(
            zip(body.inputs, [np.array(i, np.int64), np.array(going), *state], strict=True)
        )
        checked, *results = _run(call, "body", values)
        going = bool(array(checked).reshape(-1)[0])
        state, new = results[: len(state)], results[len(state) :]
        for scan, value in zip(scans, new, strict=True):
            scan.append(value)
        i += 1
    return (*state, *(_stacked(scan, 0) for scan in scans))


@operator("Scan")
def scan(call: Call, *values: Value) -> Value:
    """Run a body over the elements of axes, with a state."""
    body, many = call.get("body"), call.get("num_scan_inputs")
    if call.opset < 9:  # axis 0 is the batch, and values[0] are lengths, which are ignored
        samples = array(values[1]).shape[0]
        one = [
            _scanned(
                call, body, many, [v if v is None else ops.take(v, index=(n,)) for v in values[1:]]
            )
            for n in range(samples)
        ]
        return tuple(ops.stack(*column, axis=0) for column in zip(*one, strict=True))
    return tuple(_scanned(call, body, many, list(values)))


def _scanned(call: Call, body: Any, many: int, values: list[Any]) -> list[Any]:
    state, scanned = values[: len(values) - many], values[len(values) - many :]
    axes = call.get("scan_input_axes", (0,) * many)
    back = call.get("scan_input_directions", (0,) * many)
    count = array(scanned[0]).shape[axes[0]]
    outputs: list[list[Any]] = [[] for _ in range(len(body.outputs) - len(state))]
    for i in range(count):
        parts = []
        for value, axis, reverse in zip(scanned, axes, back, strict=True):
            index = (*(slice(None),) * (axis % array(value).ndim), count - 1 - i if reverse else i)
            parts.append(ops.take(value, index=index) if is_float(value) else array(value)[index])
        results = _run(call, "body", dict(zip(body.inputs, [*state, *parts], strict=True)))
        state, new = results[: len(state)], results[len(state) :]
        for output, value in zip(outputs, new, strict=True):
            output.append(value)
    places = call.get("scan_output_axes", (0,) * len(outputs))
    turned = call.get("scan_output_directions", (0,) * len(outputs))
    stacked = [
        _stacked(output[::-1] if reverse else output, axis)
        for output, axis, reverse in zip(outputs, places, turned, strict=True)
    ]
    return [*state, *stacked]


def _stacked(values: list[Any], axis: int) -> Any:
    if not values:
        return np.zeros(0, np.float32)
    if any(is_float(v) for v in values):
        return ops.stack(*values, axis=axis)
    return np.stack([array(v) for v in values], axis)


TABLE.update({
    "SequenceConstruct": lambda call, *values: list(values),
    "SequenceEmpty": lambda call: [],
    "SequenceLength": lambda call, values: np.array(len(values), np.int64),
    "SequenceAt": lambda call, values, at: values[int(array(at).reshape(-1)[0])],
    "Optional": lambda call, value=None: value,
    "OptionalHasElement": lambda call, value=None: np.array(value is not None),
})  # fmt: skip


@operator("SequenceInsert")
def sequence_insert(call: Call, values: Value, new: Value, at: Value = None) -> Value:
    """Insert a value into a sequence, by default at its end."""
    place = len(values) if at is None else int(array(at).reshape(-1)[0])
    place = place + len(values) if place < 0 else place
    return [*values[:place], new, *values[place:]]


@operator("SequenceErase")
def sequence_erase(call: Call, values: Value, at: Value = None) -> Value:
    """Remove a value from a sequence, by default its last."""
    place = (-1 if at is None else int(array(at).reshape(-1)[0])) % len(values)
    return [*values[:place], *values[place + 1 :]]


@operator("SequenceMap")
def sequence_map(call: Call, values: Value, *more: Value) -> Value:
    """Run a body over the elements of sequences."""
    body = call.get("body")
    results = []
    for i, value in enumerate(values):
        elements = [value, *(m[i] if isinstance(m, list) else m for m in more)]
        results.append(_run(call, "body", dict(zip(body.inputs, elements, strict=True))))
    columns = [list(column) for column in zip(*results, strict=True)]
    mapped = columns or [[] for _ in body.outputs]
    return tuple(mapped)


@operator("SplitToSequence")
def split_to_sequence(call: Call, x: Value, sizes: Value = None) -> Value:
    """Split an array along an axis into a sequence."""
    axis = call.get("axis", 0) % array(x).ndim
    length = array(x).shape[axis]
    step = np.array(1) if sizes is None else array(sizes)
    if step.ndim:
        parts = [int(n) for n in step]
    else:
        one = max(1, int(step))
        parts = [min(one, length - a) for a in range(0, length, one)]
    pieces = list(ops.split(x, sizes=parts, axis=axis))
    if sizes is None and not call.get("keepdims", 1):
        shapes = [tuple(n for i, n in enumerate(p.shape) if i != axis) for p in pieces]
        pieces = [ops.reshape(p, shape=s) for p, s in zip(pieces, shapes, strict=True)]
    return pieces if is_float(x) else [p.data for p in pieces]


@operator("ConcatFromSequence")
def concat_from_sequence(call: Call, values: Value) -> Value:
    """Join the values of a sequence along an axis, which may be new."""
    join = ops.stack if call.get("new_axis", 0) else ops.concatenate
    return join(*values, axis=call.get("axis"))


@operator("OptionalGetElement")
def optional_get_element(call: Call, value: Value) -> Value:
    """Return the value of an optional."""
    if value is None:
        raise SettingsError("OptionalGetElement: expected a value, found none")
    return value
