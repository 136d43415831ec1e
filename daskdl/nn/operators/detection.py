"""Boxes of single-shot detectors, as Caffe's SSD names them."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from daskdl.errors import SettingsError, ShapeError
from daskdl.kernels.detection.nms import nms
from daskdl.nn.operators.table import Call, Value, array, operator
from daskdl.tensor import Array

#: What an unused row of :func:`detection_output` has as its label.
NOTHING = -1


def _shapes(call: Call) -> Array:
    """Return widths and heights (k, 2) in pixels of the boxes of a cell."""
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

    Left, top, right and bottom edge as fractions of the image; by row, column and shape (W. Liu et
    al., SSD: Single Shot MultiBox Detector, arXiv 1512.02325, section 2.2).
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
    """Return the edges (P, 4) to which offsets (P, 4) lead from priors (2 or 1, P, 4)."""
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
    """Return the objects of each image, (N, most, 6), those of the highest scores first.

    Label, score, left, top, right and bottom edge as fractions of the image; rows that no object
    takes have the label -1 and zeros. ``keep_top_k`` is the number of rows.
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
    """Return label, score and edges (k, 6) of an image's objects, those of high scores first.

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
