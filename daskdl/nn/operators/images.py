"""Resizing and sampling of images, and boxes of single-shot detectors."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from daskdl import ops
from daskdl.errors import SettingsError, ShapeError
from daskdl.kernels.detection import nms
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


@operator("Resize", "Upsample")
def resize(
    call: Call, x: Value, roi: Value = None, scales: Value = None, sizes: Value = None
) -> Value:
    """Interpolate on another grid: nearest, linear or cubic, axis by axis.

    Upsample, and Resize before version 11, take (x, scales) and divide a result's place by them.
    """
    if call.opset < 11 or call.name == "Upsample":
        factors = call.get("scales") if roi is None else array(roi).tolist()
        if factors is None:  # version 1
            factors = [1.0, 1.0, call.get("height_scale", 1.0), call.get("width_scale", 1.0)]
        mode = {"bilinear": "linear"}.get(call.get("mode"), call.get("mode", "nearest"))
        how = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        call, roi, scales = Call("Resize", {"mode": mode, **how}), None, np.asarray(factors)
    values = array(x)
    axes = axes_of(call, values.ndim) or tuple(range(values.ndim))
    lengths = [values.shape[a] for a in axes]
    how = call.get("coordinate_transformation_mode", "half_pixel")
    mode = call.get("mode", "nearest")
    if scales is not None and array(scales).size:
        factors = [float(s) for s in array(scales)]
        wanted = [math.floor(n * s + 1e-9) for n, s in zip(lengths, factors, strict=True)]
    else:
        wanted = list(integers(sizes))
        factors = [m / n for n, m in zip(lengths, wanted, strict=True)]
        policy = call.get("keep_aspect_ratio_policy", "stretch")
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
        nearest=call.get("nearest_mode", "round_prefer_floor"),
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
    """Return the places of ``count`` results along an axis of ``length``."""
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


@operator("GridSample")
def grid_sample(call: Call, x: Value, grid: Value) -> Value:
    """Interpolate images at the places of a grid."""
    mode = call.get("mode", "linear")
    return channels_second(
        ops.grid_sample(
            channels_last(x),
            grid,
            mode={"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode),
            padding_mode=call.get("padding_mode", "zeros"),
            align_corners=bool(call.get("align_corners", 0)),
        )
    )


@operator("AffineGrid")
def affine_grid(call: Call, theta: Value, size: Value) -> Value:
    """Return a grid's places, from -1 to 1, under affine maps (N, 2 or 3, 3 or 4)."""
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


#: Label of an unused row of :func:`detection_output`.
NOTHING = -1


def _shapes(call: Call) -> Array:
    """Return widths and heights (k, 2) of a cell's boxes in pixels."""
    ratios: list[float] = [1.0]
    for ratio in call.get("aspect_ratio", ()):
        if all(abs(ratio - r) >= 1e-6 for r in ratios):
            ratios += [ratio, 1 / ratio] if call.get("flip", 1) else [ratio]
    least, most = call.get("min_size"), call.get("max_size", ())
    shapes = []
    for i, size in enumerate(least):
        shapes.append((size, size))
        if most:
            side = math.sqrt(size * most[i])
            shapes.append((side, side))
        shapes += [(size * math.sqrt(r), size / math.sqrt(r)) for r in ratios[1:]]
    return np.array(shapes)


@operator("PriorBox", keys="aspect_ratio clip flip image max_size min_size offset step variance")
def prior_box(call: Call, features: Value, image: Value) -> Value:
    """Return boxes around each cell of a feature map, and their variances, (1, 2, 4 x boxes).

    A box is its left, top, right and bottom edge as fractions of the image; boxes are ordered by
    row, column and shape (W. Liu et al., SSD: Single Shot MultiBox Detector, arXiv 1512.02325,
    section 2.2).
    """
    lengths, whole = array(features).shape[2:], call.get("image") or array(image).shape[2:]
    key = tuple(sorted(call.attributes.items()))
    return _boxes(lengths, tuple(whole), key).astype(array(features).dtype, copy=False)


@lru_cache(64)
def _boxes(
    lengths: tuple[int, int], whole: tuple[int, int], attributes: tuple[tuple[str, Any], ...]
) -> Array:
    """Return the boxes of a feature map; they are the same for all images of a size."""
    (rows, columns), (height, width) = lengths, whole
    call = Call("PriorBox", dict(attributes))
    down, across = call.get("step") or (height / rows, width / columns)
    shapes = _shapes(call) / (width, height)
    y, x = np.meshgrid(
        (np.arange(rows) + call.get("offset", 0.5)) * down / height,
        (np.arange(columns) + call.get("offset", 0.5)) * across / width,
        indexing="ij",
    )
    centres = np.stack([x, y], -1)[:, :, None]
    boxes = np.concatenate([centres - shapes / 2, centres + shapes / 2], -1)
    if call.get("clip", 0):
        boxes = np.clip(boxes, 0, 1)
    variances = np.broadcast_to(call.get("variance", (0.1,)), boxes.shape)
    both = np.stack([boxes.reshape(-1), variances.reshape(-1)])[None].astype(np.float32)
    both.setflags(write=False)
    return both


def _decoded(call: Call, offsets: Array, priors: Array) -> Array:
    """Return the edges (P, 4) of offsets (P, 4) from priors (2 or 1, P, 4)."""
    boxes = priors[0]
    variances = np.float32(1) if call.get("variance_encoded_in_target", 0) else priors[1]
    code = call.get("code_type", "CORNER")
    moves: Array = offsets * variances
    sizes = boxes[:, 2:] - boxes[:, :2]
    if code == "CORNER":
        return boxes + moves
    if code == "CORNER_SIZE":
        return boxes + moves * np.concatenate([sizes, sizes], -1)
    if code != "CENTER_SIZE":
        raise SettingsError(
            f"DetectionOutput: code_type: expected CORNER, CENTER_SIZE or CORNER_SIZE, found {code}"
        )
    centres = (boxes[:, :2] + boxes[:, 2:]) / 2 + moves[..., :2] * sizes
    half = np.exp(moves[..., 2:]) * sizes / 2
    return np.concatenate([centres - half, centres + half], -1)


@operator(
    "DetectionOutput",
    keys="background_label_id code_type confidence_threshold keep_top_k nms_threshold num_classes "
    "share_location top_k variance_encoded_in_target",
)
def detection_output(call: Call, offsets: Value, scores: Value, priors: Value) -> Value:
    """Return the objects of each image, (N, most, 6), the highest scores first.

    A row has label, score, left, top, right and bottom edge as fractions of the image. Rows without
    an object have the label -1 and zeros. ``keep_top_k`` is the number of rows.
    """
    classes, share = call.get("num_classes"), call.get("share_location", 1)
    places, chances, boxes = array(offsets), array(scores), array(priors)
    count = boxes.shape[2] // 4
    kinds = 1 if share else classes
    if (
        places.size != len(places) * count * kinds * 4
        or chances.size != len(places) * count * classes
    ):
        raise ShapeError(
            f"expected offsets and scores of {count} boxes and {classes} classes, found "
            f"{places.shape} and {chances.shape}"
        )
    of_kinds = places.reshape(len(places), count, kinds, 4).transpose(0, 2, 1, 3)
    edges = boxes.reshape(-1, count, 4)
    most = call.get("keep_top_k", -1)
    rows = [
        _objects(call, of_image, edges, image.T)
        for of_image, image in zip(of_kinds, chances.reshape(-1, count, classes), strict=True)
    ]
    if most < 0:
        most = max(map(len, rows), default=0)
    result = np.zeros((len(places), most, 6), places.dtype)
    result[:, :, 0] = NOTHING
    for row, place in zip(rows, result, strict=True):
        place[: len(row)] = row[:most]
    return result


def _objects(call: Call, offsets: Array, priors: Array, scores: Array) -> Array:
    """Return label, score and edges (k, 6) of an image's objects, the highest scores first.

    Offsets are (kinds, P, 4), scores (classes, P).
    """
    least, top = call.get("confidence_threshold", -math.inf), call.get("top_k", -1)
    pieces: list[Any] = [np.zeros((0, 6), offsets.dtype)]
    for label, score_of_label in enumerate(scores):
        if label == call.get("background_label_id", 0):
            continue
        which = np.flatnonzero(score_of_label > least)
        if 0 <= top < len(which):
            which = which[np.argsort(-score_of_label[which], kind="stable")[:top]]
        kind = 0 if len(offsets) == 1 else label
        boxes, chances = (
            _decoded(call, offsets[kind, which], priors[:, which]),
            score_of_label[which],
        )
        kept = nms(boxes, chances, call.get("nms_threshold", 0.3))
        pieces.append(np.column_stack([np.full(len(kept), label), chances[kept], boxes[kept]]))
    objects: Array = np.concatenate(pieces)
    return objects[np.argsort(-objects[:, 1], kind="stable")]
