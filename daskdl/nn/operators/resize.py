"""Resizing of images, and sampling at places of one's own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from daskdl import ops
from daskdl.errors import SettingsError
from daskdl.nn.operators.table import (
    Call,
    Value,
    array,
    axes_of,
    channels_last,
    channels_second,
    integers,
    is_float,
    operator,
)
from daskdl.tensor import Array


def text(value: Any) -> str:
    """Return a setting in words."""
    return value.decode() if isinstance(value, bytes) else str(value)


@operator("Resize")
def resize(
    call: Call, x: Value, roi: Value = None, scales: Value = None, sizes: Value = None
) -> Value:
    """Interpolate on another grid: nearest, linear or cubic, axis by axis."""
    if call.opset < 11:
        return upsample(call, x, roi)
    values = array(x)
    axes = axes_of(call, values.ndim) or tuple(range(values.ndim))
    lengths = [values.shape[a] for a in axes]
    how = text(call.get("coordinate_transformation_mode", "half_pixel"))
    mode = text(call.get("mode", "nearest"))
    if scales is not None and array(scales).size:
        factors = [float(s) for s in array(scales)]
        wanted = [math.floor(n * s + 1e-9) for n, s in zip(lengths, factors, strict=True)]
    else:
        wanted = list(integers(sizes))
        factors = [m / n for n, m in zip(lengths, wanted, strict=True)]
        policy = text(call.get("keep_aspect_ratio_policy", "stretch"))
        if policy != "stretch":
            factor = (min if policy == "not_larger" else max)(factors)
            factors = [factor] * len(axes)
            wanted = [math.floor(n * factor + 0.5) for n in lengths]
    if min(wanted, default=1) < 0 or min(factors, default=1) <= 0:
        raise SettingsError(f"Resize: expected sizes of 0 or more, found {wanted}")
    points: list[Array | None] = [None] * values.ndim
    outside: list[tuple[int, Array]] = []
    regions = None if roi is None or not array(roi).size else array(roi).reshape(2, -1)
    for i, axis in enumerate(axes):
        region = (0.0, 1.0) if regions is None else (float(regions[0, i]), float(regions[1, i]))
        at = places(how, wanted[i], lengths[i], factors[i], region)
        if how == "tf_crop_and_resize":
            outside.append((axis, (at < 0) | (at > lengths[i] - 1)))
        if wanted[i] != lengths[i] or not np.array_equal(at, np.arange(lengths[i])):
            points[axis] = at
    scale_of = [1.0] * values.ndim
    for axis, factor in zip(axes, factors, strict=True):
        scale_of[axis] = factor
    y = ops.interpolate(
        x if is_float(x) else values.astype(np.float32),
        points=points,
        mode=mode,
        scales=scale_of,
        nearest=text(call.get("nearest_mode", "round_prefer_floor")),
        cubic=call.get("cubic_coeff_a", -0.75),
        exclude_outside=bool(call.get("exclude_outside", 0)),
        antialias=bool(call.get("antialias", 0)) and mode != "nearest",
    )
    for axis, gone in outside:
        if gone.any():
            shape = [1] * values.ndim
            shape[axis] = len(gone)
            fill = np.asarray(call.get("extrapolation_value", 0.0), array(y).dtype)
            y = ops.where(gone.reshape(shape), fill, y)
    return y if is_float(x) else np.rint(array(y)).astype(values.dtype)


def places(
    how: str, count: int, length: int, scale: float, region: tuple[float, float] = (0.0, 1.0)
) -> Array:
    """Return the places of the result's ``count`` elements along an axis of ``length``."""
    at = np.arange(count, dtype=np.float64)
    if how == "asymmetric":
        return at / scale
    if how == "align_corners":
        whole = length * scale
        return at * (length - 1) / (whole - 1) if whole > 1 and count > 1 else at * 0
    if how == "tf_crop_and_resize":
        start, stop = region
        if count > 1:
            return start * (length - 1) + at * (stop - start) * (length - 1) / (count - 1)
        return np.full(count, 0.5 * (start + stop) * (length - 1))
    if how == "pytorch_half_pixel" and count <= 1:
        return at * 0
    if how == "half_pixel_symmetric":
        adjust = count / (length * scale)
        centre = length / 2
        return centre * (1 - adjust) + (at + 0.5) / scale - 0.5
    if how == "tf_half_pixel_for_nn":  # of versions 11 and 12
        return (at + 0.5) / scale
    if how not in ("half_pixel", "pytorch_half_pixel"):
        raise SettingsError(f"Resize: there is no coordinate_transformation_mode {how!r}")
    return (at + 0.5) / scale - 0.5


@operator("Upsample")
def upsample(call: Call, x: Value, scales: Value = None) -> Value:
    """Enlarge by factors: nearest or linear, each result's place divided by the factor."""
    factors = call.get("scales") if scales is None else array(scales).tolist()
    lengths = array(x).shape
    if factors is None:  # version 1
        factors = [1.0, 1.0, call.get("height_scale", 1.0), call.get("width_scale", 1.0)]
    mode = text(call.get("mode", "nearest"))
    points = [
        None if s == 1 else np.arange(math.floor(n * s + 1e-9)) / s
        for n, s in zip(lengths, factors, strict=True)
    ]
    mode = "linear" if mode in ("linear", "bilinear") else mode
    return ops.interpolate(x, points=points, mode=mode, nearest="floor")


@operator("GridSample")
def grid_sample(call: Call, x: Value, grid: Value) -> Value:
    """Interpolate images at the places of a grid."""
    mode = text(call.get("mode", "linear"))
    return channels_second(
        ops.grid_sample(
            channels_last(x),
            grid,
            mode={"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode),
            padding_mode=text(call.get("padding_mode", "zeros")),
            align_corners=bool(call.get("align_corners", 0)),
        )
    )


@operator("AffineGrid")
def affine_grid(call: Call, theta: Value, size: Value) -> Value:
    """Return the places, from -1 to 1, to which affine maps (N, 2 or 3, 3 or 4) send a grid."""
    n, _, *lengths = integers(size)
    axes = []
    for count in lengths:
        step = np.arange(count, dtype=np.float64)
        if call.get("align_corners", 0):
            axes.append(-1 + 2 * step / max(1, count - 1) if count > 1 else step * 0)
        else:
            axes.append((2 * step + 1) / count - 1)
    grid = np.stack([*np.meshgrid(*axes, indexing="ij")][::-1], -1)
    grid = np.concatenate([grid, np.ones((*lengths, 1))], -1).astype(array(theta).dtype)
    flat = np.broadcast_to(
        grid.reshape(1, -1, grid.shape[-1]), (n, grid[..., 0].size, grid.shape[-1])
    )
    y = ops.matmul(np.ascontiguousarray(flat), ops.transpose(theta, axes=(0, 2, 1)))
    return ops.reshape(y, shape=(n, *lengths, len(lengths)))
