"""Operators that read or write elements of arrays by their indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl import ops
from daskdl.errors import SettingsError, ShapeError
from daskdl.nn.operators.table import (
    Call,
    Value,
    array,
    axes_of,
    integers,
    is_float,
    operator,
    shape_of,
)
from daskdl.tensor import Array


def taken(x: Value, index: tuple[Any, ...]) -> Value:
    """Index a value; gradients go through floats."""
    return ops.take(x, index=index) if is_float(x) else array(x)[index]


def _ids(value: Value, length: int) -> Array:
    """Return ids from 0; raise a ShapeError for one outside of the axis."""
    ids = array(value).astype(np.int64)
    if ids.size and not (-length <= ids.min() and ids.max() < length):
        raise ShapeError(f"expected ids of an axis of {length}, found {ids.min()} to {ids.max()}")
    return np.where(ids < 0, ids + length, ids)


@operator("Gather")
def gather(call: Call, x: Value, ids: Value) -> Value:
    """Take the elements of an axis by their ids."""
    values = array(x)
    axis = call.get("axis", 0) % values.ndim
    chosen = _ids(ids, values.shape[axis])
    if axis == 0 and values.ndim == 2 and is_float(x):
        return ops.embedding(x, chosen)
    index: Any = (*(slice(None),) * axis, chosen)
    return taken(x, index)


def _along(x: Value, ids: Value, axis: int) -> tuple[Any, ...]:
    """Return numpy's index of elements by their ids along an axis."""
    values = array(x)
    chosen = _ids(ids, values.shape[axis])
    grid = list(np.ogrid[tuple(slice(n) for n in chosen.shape)])
    grid[axis] = chosen
    return tuple(grid)


@operator("GatherElements")
def gather_elements(call: Call, x: Value, ids: Value) -> Value:
    """Take an element along an axis for each id."""
    index = _along(x, ids, call.get("axis", 0) % array(x).ndim)
    return taken(x, index)


def _nd(x: Value, ids: Value, batch: int = 0) -> tuple[Any, ...]:
    """Return numpy's index of the elements that rows of ids, (..., depth), point at."""
    shape, rows = array(x).shape, array(ids)
    depth = rows.shape[-1]
    if batch + depth > len(shape):
        raise ShapeError(f"expected ids of up to {len(shape) - batch} axes, found {rows.shape}")
    lead = np.ogrid[tuple(slice(n) for n in rows.shape[:batch])] if batch else []
    lead = [a.reshape(a.shape + (1,) * (rows.ndim - 1 - batch)) for a in lead]
    return (*lead, *(_ids(rows[..., i], shape[batch + i]) for i in range(depth)))


@operator("GatherND")
def gather_nd(call: Call, x: Value, ids: Value) -> Value:
    """Take the elements that rows of ids point at."""
    index = _nd(x, ids, call.get("batch_dims", 0))
    return taken(x, index)


def _scattered(call: Call, x: Value, updates: Value, index: tuple[Any, ...]) -> Value:
    y = ops.scatter(x, updates, index=index, reduction=call.get("reduction", "none"))
    return y if is_float(x) else y.data


@operator("ScatterElements", "Scatter")
def scatter_elements(call: Call, x: Value, ids: Value, updates: Value) -> Value:
    """Write elements along an axis."""
    return _scattered(call, x, updates, _along(x, ids, call.get("axis", 0) % array(x).ndim))


@operator("ScatterND")
def scatter_nd(call: Call, x: Value, ids: Value, updates: Value) -> Value:
    """Write the elements that rows of ids point at."""
    return _scattered(call, x, updates, _nd(x, ids))


@operator("Slice")
def slices(
    call: Call,
    x: Value,
    starts: Value = None,
    ends: Value = None,
    axes: Value = None,
    steps: Value = None,
) -> Value:
    """Take parts of axes, ``start:end:step``."""
    lengths = shape_of(x)
    first = call.get("starts") if starts is None else integers(starts)
    last = call.get("ends") if ends is None else integers(ends)
    chosen = axes_of(call, len(lengths), axes) or tuple(range(len(first)))
    step = (1,) * len(first) if steps is None else integers(steps)
    index: list[Any] = [slice(None)] * len(lengths)
    for axis, a, b, s in zip(chosen, first, last, step, strict=True):
        n = lengths[axis]
        a, b = (v + n if v < 0 else v for v in (a, b))
        low, high = (0, n) if s > 0 else (-1, n - 1)
        a, b = max(0, min(a, high if s < 0 else n)), max(low, min(b, n))
        index[axis] = slice(a, None if b < 0 else b, s)
    return taken(x, tuple(index))


@operator("Compress")
def compress(call: Call, x: Value, condition: Value) -> Value:
    """Take the elements of an axis, or of all, where a condition holds."""
    places, axis = np.flatnonzero(array(condition)), call.get("axis")
    if axis is None:
        x, axis = ops.reshape(x, shape=(-1,)), 0
    index = (*(slice(None),) * (axis % array(x).ndim), places)
    return taken(x, index)


@operator("OneHot")
def one_hot(call: Call, ids: Value, depth: Value, values: Value) -> Value:
    """Return the second of two values at the places of ids, the first elsewhere."""
    places, count = array(ids), int(array(depth).reshape(-1)[0])
    off, on = array(values)
    axis = call.get("axis", -1)
    axis = axis + places.ndim + 1 if axis < 0 else axis
    chosen = np.expand_dims(np.where(places < 0, places + count, places), axis)
    grid = np.arange(count).reshape(-1, *(1,) * (places.ndim - axis))
    return np.where(chosen == grid, on, off).astype(array(values).dtype)


@operator("ReverseSequence")
def reverse_sequence(call: Call, x: Value, lengths: Value) -> Value:
    """Reverse each sample's steps, up to its length."""
    values, sizes = array(x), array(lengths)
    time, batch = call.get("time_axis", 0), call.get("batch_axis", 1)
    steps = np.arange(values.shape[time])[:, None]
    places = np.where(steps < sizes, sizes - 1 - steps, steps)
    samples = np.arange(values.shape[batch])
    index = (places, samples) if time == 0 else (samples[:, None], places.T)
    if {time, batch} != {0, 1}:
        raise SettingsError(f"ReverseSequence: expected axes 0 and 1, found {time} and {batch}")
    return taken(x, index)


@operator("TensorScatter")
def tensor_scatter(call: Call, past: Value, update: Value, at: Value = None) -> Value:
    """Write steps into a cache, from each sample's own place on."""
    cache, new = array(past), array(update)
    axis = call.get("axis", -2) % cache.ndim
    start = np.zeros(len(cache), np.int64) if at is None else array(at)
    places = start[:, None] + np.arange(new.shape[axis])
    if call.get("mode", "linear") == "circular":
        places = places % cache.shape[axis]
    grid = list(np.ogrid[tuple(slice(n) for n in new.shape)])
    shape = [1] * cache.ndim
    shape[0], shape[axis] = places.shape
    grid[axis] = _ids(places.reshape(shape), cache.shape[axis])
    y = ops.scatter(past, update, index=tuple(grid))
    return y if is_float(past) else y.data
