"""ONNX nodes of operations that move elements: reshape, transpose, concatenate and others."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl.errors import SettingsError
from daskdl.interop.building import Value
from daskdl.interop.onnx.emitter import Emitter
from daskdl.interop.onnx.operations import writer


@writer("reshape")
def reshape(emit: Emitter, inputs: Any, settings: Any, shapes: Any) -> Value:
    """Reshape."""
    target = emit.shape(shapes[0], reshaping=True)
    return Value(emit.node("Reshape", inputs[0], target), len(shapes[0][0]))


@writer("transpose")
def transpose(emit: Emitter, inputs: Any, settings: Any, shapes: Any) -> Value:
    """Permute axes."""
    x = inputs[0]
    axes = [a % x.rank for a in settings["axes"]]
    return Value(emit.node("Transpose", x, perm=axes), x.rank)


@writer("concatenate")
def concatenate(emit: Emitter, inputs: Any, settings: Any, shapes: Any) -> Value:
    """Join along an axis."""
    ndim = len(shapes[0][0])
    axis = settings.get("axis", -1) % ndim
    if all(v.second for v in inputs):  # the axis in (N, C, ...)
        there = 1 if axis == ndim - 1 else axis + 1 if axis else 0
        return Value(emit.node("Concat", *(v.name for v in inputs), axis=there), ndim, True)
    return Value(emit.node("Concat", *inputs, axis=axis), ndim)


@writer("stack")
def stack(emit: Emitter, inputs: Any, settings: Any, shapes: Any) -> Value:
    """Join along a new axis."""
    ndim = len(shapes[0][0])
    axis = settings.get("axis", 0) % ndim
    parts = [emit.node("Unsqueeze", v, emit.integers(axis)) for v in inputs]
    return Value(emit.node("Concat", *parts, axis=axis), ndim)


@writer("split")
def split(emit: Emitter, inputs: Any, settings: Any, shapes: Any) -> Any:
    """Cut along an axis."""
    x, sizes = inputs[0], settings["sizes"]
    axis = settings.get("axis", -1) % x.rank
    names = emit.node("Split", x, emit.integers(*sizes), results=len(sizes), axis=axis)
    names = names if isinstance(names, tuple) else (names,)
    return tuple(Value(name, x.rank) for name in names)


@writer("take")
def take(emit: Emitter, inputs: Any, settings: Any, shapes: Any) -> Value:
    """Index with integers, slices, None and one array of ids."""
    x, index = inputs[0], list(settings["index"])
    name, axis = emit.last(x).name, 0
    gone: list[int] = []
    new: list[int] = []
    if Ellipsis in [i for i in index if not isinstance(i, np.ndarray)]:
        at = next(i for i, part in enumerate(index) if part is Ellipsis)
        used = sum(part is not None for part in index) - 1
        index[at : at + 1] = [slice(None)] * (x.rank - used)
    for part in index:
        if part is None:
            new.append(axis - len(gone) + len(new))
        elif isinstance(part, slice):
            if part != slice(None):
                cuts = [emit.integers(n) for n in _bounds(part)]
                name = emit.node("Slice", name, cuts[0], cuts[1], emit.integers(axis), cuts[2])
            axis += 1
        elif isinstance(part, (int, np.integer)):
            name = emit.node("Gather", name, np.array([part], np.int64), axis=axis)
            gone.append(axis)
            axis += 1
        elif sum(isinstance(p, (list, np.ndarray)) for p in index) == 1 and np.ndim(part) == 1:
            name = emit.node("Gather", name, np.asarray(part, np.int64), axis=axis)
            axis += 1
        else:
            raise SettingsError(f"an index of {part!r} cannot be written as ONNX")
    if gone:
        name = emit.node("Squeeze", name, emit.integers(*gone))
    if new:
        name = emit.node("Unsqueeze", name, emit.integers(*new))
    return Value(name, len(shapes[0][0]))


def _bounds(part: slice) -> tuple[int, int, int]:
    step = 1 if part.step is None else part.step
    far = (1 << 62) if step > 0 else -(1 << 62)
    start = (0 if step > 0 else 1 << 62) if part.start is None else part.start
    return start, far if part.stop is None else part.stop, step


@writer("flip")
def flip(emit: Emitter, inputs: Any, settings: Any, shapes: Any) -> Value:
    """Reverse axes."""
    axes = settings["axis"]
    axes = (axes,) if isinstance(axes, int) else axes
    cuts = ([-1] * len(axes), [-(1 << 62)] * len(axes), axes, [-1] * len(axes))
    return Value(emit.node("Slice", inputs[0], *(emit.integers(*n) for n in cuts)), inputs[0].rank)


@writer("repeat")
def repeat(emit: Emitter, inputs: Any, settings: Any, shapes: Any) -> Value:
    """Repeat each element: tile a new axis and merge it."""
    x, times = inputs[0], settings["times"]
    axis = settings["axis"] % x.rank
    wide = emit.node("Unsqueeze", x, emit.integers(axis + 1))
    tiles = [1] * (x.rank + 1)
    tiles[axis + 1] = times
    wide = emit.node("Tile", wide, emit.integers(*tiles))
    return Value(emit.node("Reshape", wide, emit.shape(shapes[0], reshaping=True)), x.rank)


@writer("pad")
def pad(emit: Emitter, inputs: Any, settings: Any, shapes: Any) -> Value:
    """Pad or crop."""
    before, behind = zip(*settings["widths"], strict=True)
    mode = settings.get("mode", "constant")
    value = np.float32(settings.get("value", 0.0)) if mode == "constant" else None
    y = emit.node("Pad", inputs[0], emit.integers(*before, *behind), value, mode=mode)
    return Value(y, inputs[0].rank)


@writer("space_to_depth", "depth_to_space")
def blocks(emit: Emitter, inputs: Any, settings: Any, shapes: Any, name: str) -> Value:
    """Fold blocks of pixels into channels, or back, by Reshape and Transpose."""
    x, block = inputs[0], settings["block"]
    small = shapes[0] if name == "space_to_depth" else settings["given"]
    large = settings["given"] if name == "space_to_depth" else shapes[0]
    lead = x.rank - 3
    between = []
    for one, other in zip(small, large, strict=True):
        rows, columns = one[-3:-1]
        cells = (
            (rows, block, columns, block)
            if name == "space_to_depth"
            else (rows, columns, block, block)
        )
        between.append((*one[:lead], *cells, other[-1]))
    order = [*range(lead), lead, lead + 2, lead + 1, lead + 3, lead + 4]
    y = emit.node("Reshape", x, emit.shape(between, reshaping=True))
    y = emit.node("Transpose", y, perm=order)
    return Value(emit.node("Reshape", y, emit.shape(shapes[0], reshaping=True)), x.rank)


@writer("along")
def along(emit: Emitter, inputs: Any, settings: Any, shapes: Any) -> Value:
    """Multiply an axis by a matrix: move the axis to the end, and apply MatMul."""
    x, axis = inputs[0], settings["axis"]
    matrix = np.asarray(settings["matrix"], np.float32)
    order = [*(i for i in range(x.rank) if i != axis), axis]
    y = emit.node("Transpose", x, perm=order)
    y = emit.node("MatMul", y, np.ascontiguousarray(matrix.T))
    return Value(emit.node("Transpose", y, perm=[int(i) for i in np.argsort(order)]), x.rank)


@writer("topk")
def topk(emit: Emitter, inputs: Any, settings: Any, shapes: Any) -> Any:
    """Return the largest or smallest elements along an axis, and their places."""
    x = inputs[0]
    names = emit.node(
        "TopK", x, emit.integers(settings["k"]), results=2, axis=settings.get("axis", -1),
        largest=int(settings.get("largest", True)),
    )  # fmt: skip
    return tuple(Value(name, x.rank) for name in names)
