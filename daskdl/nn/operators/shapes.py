"""Operators that return, change or make shapes."""

from __future__ import annotations

import math
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


@operator("Shape")
def shape(call: Call, x: Value) -> Value:
    """Return the shape of x, int64, or a part of it."""
    return np.array(shape_of(x)[call.get("start", 0) : call.get("end")], np.int64)


@operator("Size")
def size(call: Call, x: Value) -> Value:
    """Return the number of elements, int64."""
    return np.array(array(x).size, np.int64)


@operator("Reshape")
def reshape(call: Call, x: Value, target: Value = None) -> Value:
    """Give x another shape; 0 keeps a length, -1 is the rest."""
    wanted = call.get("shape") if target is None else integers(target)
    lengths = shape_of(x)
    if not call.get("allowzero", 0):
        if any(n == 0 and i >= len(lengths) for i, n in enumerate(wanted)):
            raise ShapeError(f"Reshape: 0 stands for no length of {lengths} in {wanted}")
        wanted = [lengths[i] if n == 0 else n for i, n in enumerate(wanted)]
    return ops.reshape(x, shape=tuple(wanted))


@operator("Flatten")
def flatten(call: Call, x: Value) -> Value:
    """Join the axes before ``axis`` to one, and the other axes to another."""
    lengths = shape_of(x)
    axis = call.get("axis", 1)
    axis = axis + len(lengths) if axis < 0 else axis
    return ops.reshape(x, shape=(math.prod(lengths[:axis]), math.prod(lengths[axis:])))


@operator("Squeeze")
def squeeze(call: Call, x: Value, axes: Value = None) -> Value:
    """Remove axes of length 1."""
    lengths = shape_of(x)
    gone = axes_of(call, len(lengths), axes)
    if not gone and axes is None and call.get("axes") is None:
        gone = tuple(i for i, n in enumerate(lengths) if n == 1)
    if any(lengths[i] != 1 for i in gone):
        raise ShapeError(f"Squeeze: expected axes of one element, found {gone} of {lengths}")
    return ops.reshape(x, shape=tuple(n for i, n in enumerate(lengths) if i not in gone))


@operator("Unsqueeze")
def unsqueeze(call: Call, x: Value, axes: Value = None) -> Value:
    """Insert axes of length 1."""
    new_axes = call.get("axes", ()) if axes is None else integers(axes)
    lengths = list(shape_of(x))
    places = axes_of(call, len(lengths) + len(new_axes), axes)
    for i in sorted(places):
        lengths.insert(i, 1)
    return ops.reshape(x, shape=tuple(lengths))


@operator("Transpose")
def transpose(call: Call, x: Value) -> Value:
    """Reorder the axes, by default reversed; a view."""
    ndim = len(shape_of(x))
    return ops.transpose(x, axes=tuple(call.get("perm", range(ndim)[::-1]))) if ndim else x


@operator("Concat")
def concat(call: Call, *values: Value) -> Value:
    """Join arrays along an axis."""
    axis = call.get("axis", 1)
    if any(is_float(v) for v in values):
        return ops.concatenate(*values, axis=axis)
    return np.concatenate([array(v) for v in values], axis)


@operator("Split")
def split(call: Call, x: Value, sizes: Value = None) -> Value:
    """Cut along an axis, into given sizes or equal parts."""
    axis = call.get("axis", 0)
    length = shape_of(x)[axis]
    parts = call.get("split") if sizes is None else integers(sizes)
    if parts is None:
        count = call.get("num_outputs", call.results)
        step = -(-length // count)
        parts = [max(0, min(step, length - i * step)) for i in range(count)]
    return ops.split(x, sizes=tuple(parts), axis=axis)


@operator("Expand")
def expand(call: Call, x: Value, target: Value) -> Value:
    """Broadcast to a shape, or to x's lengths where they are larger."""
    wanted = np.broadcast_shapes(shape_of(x), integers(target))
    if not is_float(x):
        return np.broadcast_to(array(x), wanted)
    return ops.add(x, np.zeros(wanted, array(x).dtype))


@operator("Tile")
def tile(call: Call, x: Value, repeats: Value, tiles: Value = None) -> Value:
    """Repeat x along axes."""
    lengths = shape_of(x)
    times = integers(repeats)
    if tiles is not None:  # version 1: the number of repeats, and the axis
        axis = integers(tiles)[0]
        times = tuple(times[0] if i == axis else 1 for i in range(len(lengths)))
    if not is_float(x):
        return np.tile(array(x), times)
    for axis, count in enumerate(times):
        if count != 1:
            x = (
                ops.concatenate(*[x] * count, axis=axis)
                if count
                else x[(slice(None),) * axis + (slice(0, 0),)]
            )
    return x


@operator("Pad")
def pad(call: Call, x: Value, pads: Value = None, value: Value = None, axes: Value = None) -> Value:
    """Add elements around x, or cut them off."""
    values = array(x)
    widths = call.get("pads", call.get("paddings")) if pads is None else integers(pads)
    fill = call.get("value", 0.0) if value is None else array(value).reshape(-1)[0]
    chosen = axes_of(call, values.ndim, axes) if axes is not None else tuple(range(values.ndim))
    if len(widths) != 2 * len(chosen):
        raise SettingsError(f"Pad: expected {2 * len(chosen)} widths, found {len(widths)}")
    around = [(0, 0)] * values.ndim
    for i, axis in enumerate(chosen):
        around[axis] = (widths[i], widths[i + len(chosen)])
    mode = call.get("mode", "constant")
    if mode == "wrap" or (values.dtype.kind == "f" and mode == "reflect"):  # any width, as in numpy
        for axis, (before, behind) in enumerate(around):
            if before or behind:
                n = values.shape[axis]
                ids = np.arange(-before, n + behind)
                turn = (ids + n - 1) % max(1, 2 * (n - 1))
                ids = ids % n if mode == "wrap" else np.abs(turn - n + 1)
                x = ops.take(x, index=(slice(None),) * axis + (ids,))
        return x
    return ops.pad(x, widths=around, value=values.dtype.type(fill), mode=mode)


@operator("CenterCropPad")
def center_crop_pad(call: Call, x: Value, target: Value) -> Value:
    """Cut or pad with zeros, around the middle, to a shape."""
    lengths, wanted = array(x).shape, integers(target)
    axes = axes_of(call, len(lengths)) or tuple(range(len(lengths)))
    around = [(0, 0)] * len(lengths)
    for axis, n in zip(axes, wanted, strict=True):
        more = n - lengths[axis]
        before = more // 2 if more >= 0 else -(-more // 2)
        around[axis] = (before, more - before)
    return ops.pad(x, widths=around)


@operator("Constant")
def constant(call: Call) -> Value:
    """Return the array that the node holds."""
    if call.get("value") is not None:
        return call.get("value")
    for name, dtype in (("value_float", np.float32), ("value_floats", np.float32),
                        ("value_int", np.int64), ("value_ints", np.int64)):  # fmt: skip
        if call.get(name) is not None:
            return np.array(call.get(name), dtype)
    raise SettingsError(f"Constant: expected numbers, found {sorted(call.attributes)}")


@operator("ConstantOfShape")
def constant_of_shape(call: Call, target: Value) -> Value:
    """Return an array of one value, by default float32 0."""
    value = call.get("value")
    filler = np.zeros(1, np.float32) if value is None else np.asarray(value)
    return np.full(integers(target), filler.reshape(-1)[0], filler.dtype)


@operator("Range")
def arange(call: Call, start: Value, limit: Value, delta: Value) -> Value:
    """Numbers from ``start`` to below ``limit``."""
    first, last, step = (array(v).reshape(-1)[0] for v in (start, limit, delta))
    if not step:
        raise SettingsError("Range: expected a delta other than 0")
    count = max(0, math.ceil((last - first) / step))
    return (first + np.arange(count) * step).astype(array(start).dtype)


@operator("EyeLike")
def eye_like(call: Call, x: Value) -> Value:
    """Ones on a diagonal, in the shape of x."""
    rows, columns = array(x).shape
    return np.eye(rows, columns, call.get("k", 0), dtype_of(call, array(x).dtype))


@operator("Trilu")
def trilu(call: Call, x: Value, k: Value = None) -> Value:
    """Set elements below a diagonal, or with ``upper=0`` above it, to 0."""
    shift = 0 if k is None else int(array(k).reshape(-1)[0])
    values = array(x)
    rows, columns = np.arange(values.shape[-2])[:, None], np.arange(values.shape[-1])
    inside = columns - rows >= shift if call.get("upper", 1) else columns - rows <= shift
    if not is_float(x):
        return np.where(inside, values, np.zeros((), values.dtype))
    return ops.where(inside, x, np.zeros((), values.dtype))


@operator("DepthToSpace", "SpaceToDepth")
def depth_to_space(call: Call, x: Value) -> Value:
    """Move channels into blocks of pixels, or back."""
    n, channels, height, width = array(x).shape
    block = call.get("blocksize")
    depth_first = call.get("mode", "DCR") == "DCR"
    if call.name == "SpaceToDepth":
        y = ops.reshape(x, shape=(n, channels, height // block, block, width // block, block))
        y = ops.transpose(y, axes=(0, 3, 5, 1, 2, 4) if depth_first else (0, 1, 3, 5, 2, 4))
        return ops.reshape(y, shape=(n, channels * block**2, height // block, width // block))
    share = channels // block**2
    if depth_first:
        y = ops.reshape(x, shape=(n, block, block, share, height, width))
        y = ops.transpose(y, axes=(0, 3, 4, 1, 5, 2))
    else:
        y = ops.reshape(x, shape=(n, share, block, block, height, width))
        y = ops.transpose(y, axes=(0, 1, 4, 2, 5, 3))
    return ops.reshape(y, shape=(n, share, height * block, width * block))


#: Dtypes by ONNX's numbers; float16 is computed in float32.
DTYPES: dict[int, Any] = {
    1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64,
    9: np.bool_, 10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64,
}  # fmt: skip
REFUSED = {
    0: "undefined", 8: "string", 14: "complex64", 15: "complex128", 16: "bfloat16",
    17: "float8e4m3fn", 18: "float8e4m3fnuz", 19: "float8e5m2", 20: "float8e5m2fnuz", 21: "uint4",
    22: "int4", 23: "float4e2m1", 24: "float8e8m0", 25: "uint2", 26: "int2",
}  # fmt: skip


def dtype_of(call: Call, default: Any = np.float32, name: str = "dtype") -> Any:
    """Return the dtype of an attribute, ONNX's number; float32 for float16."""
    number = call.get(name)
    if number is None:
        return default
    if number not in DTYPES:
        raise SettingsError(
            f"{call.name}: expected numbers of 16 bits or more, integers or bools, found "
            f"{REFUSED.get(number, number)}"
        )
    return np.float32 if number == 10 else DTYPES[number]


@operator("Cast", "CastLike")
def cast(call: Call, x: Value, like: Value = None) -> Value:
    """Return x in another dtype; float16 is rounded and kept as float32."""
    values = array(x)
    dtype = dtype_of(call, name="to") if like is None else array(like).dtype
    with np.errstate(over="ignore", invalid="ignore"):
        if call.get("to") == 10:
            return ops.cast(ops.cast(x, dtype=np.float16), dtype=np.float32)
        if values.dtype.kind != "f":
            return values.astype(dtype)
        if np.dtype(dtype).kind == "f":
            return x if values.dtype == dtype else ops.cast(x, dtype=dtype)
        return values.astype(dtype)


@operator("BitCast")
def bit_cast(call: Call, x: Value) -> Value:
    """Read the same bytes as another dtype."""
    dtype = DTYPES.get(call.get("to"))
    if dtype is None or dtype == np.float16:
        raise SettingsError(f"BitCast: cannot give {REFUSED.get(call.get('to'), 'float16')}")
    values = np.ascontiguousarray(array(x))
    return values.view(dtype).reshape(
        array(x).shape[:-1] + values.view(dtype).shape[-1:][: array(x).ndim]
    )
