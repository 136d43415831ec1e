"""Boxes: objects that a detector finds in windows of a scene, each once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError
from daskdl.kernels.detection import nms
from daskdl.predict.arguments import whole, wrong

Array = NDArray[Any]


def detect_scene(
    detect: Callable[[Array], list[dict[str, Array]]],
    scene: Any,
    window: Mapping[int, int],
    margin: int,
    overlap: float = 0.45,
) -> dict[str, Array]:
    """Find the objects of a scene, each once, in overlapping windows.

    Parameters
    ----------
    detect : callable
        From images (1, rows, columns, C) to a dict for each, like :meth:`daskdl.models.SSD.detect`.
    scene : array (rows, columns, C) of Dask, zarr or numpy
    window : mapping
        ``{0: rows, 1: columns}`` of a window; the last ones are moved inside of the scene.
    margin : int
        Cells that windows share. An object of at most this size is whole in one of them; a box that
        ends at the border of its window, but not of the scene, is left to the other window.
    overlap : float
        If two boxes of a class overlap by more, the one with the lower score is dropped.

    Returns
    -------
    dict of array
        ``boxes`` float32 (k, 4), left, top, right and bottom edge in cells; ``scores`` float32
        (k,), the highest first; ``labels`` int64 (k,).

    Raises
    ------
    DataError, SettingsError
        When the scene has other axes, or the window does not name its two axes.

    Examples
    --------
    >>> from daskdl.predict import detect_scene
    >>> def brightest(images):
    ...     row, column = np.unravel_index(images[0, ..., 0].argmax(), images.shape[1:3])
    ...     box = np.array([[column, row, column + 2, row + 2]]) / images.shape[1]
    ...     return [{"boxes": box, "scores": images.max((1, 2, 3)), "labels": np.array([0])}]
    >>> scene = np.zeros((40, 40, 1))
    >>> scene[17, 5] = 1
    >>> found = detect_scene(brightest, scene, {0: 20, 1: 20}, margin=4)
    >>> found["boxes"][found["scores"] > 0.5]
    array([[ 5., 17.,  7., 19.]], dtype=float32)
    """
    import dask
    import dask.array as da

    margin = whole("detect_scene, margin", margin, 0)
    if not isinstance(window, Mapping) or {*window} != {0, 1}:
        raise wrong("detect_scene, window", "{0: rows, 1: columns}", window)
    for axis, n in window.items():
        whole(f"detect_scene, window[{axis}], more than the margin", n, margin + 1)
    if len(getattr(scene, "shape", ())) != 3:
        raise DataError(
            "detect_scene: expected a scene (rows, columns, C), found shape "
            f"{getattr(scene, 'shape', None)}"
        )
    if not hasattr(scene, "dims") and not isinstance(scene, da.Array):
        scene = da.from_array(scene)  # its slices are lazy
    shape = scene.shape[:2]
    sizes = [min(window[i], n) for i, n in enumerate(shape)]
    starts = [
        sorted({min(s, n - size) for s in range(0, max(1, n - margin), size - margin)})
        for n, size in zip(shape, sizes, strict=True)
    ]
    task = dask.delayed(_detected)
    tasks = []
    for top, left in itertools.product(*starts):
        part = scene[top : top + sizes[0], left : left + sizes[1]]
        tasks.append(task(detect, part, top, left, shape))
    each = dask.compute(*tasks)
    boxes, scores, labels = (np.concatenate([one[i] for one in each]) for i in range(3))
    kept = [
        of[nms(boxes[of], scores[of], overlap)]
        for label in np.unique(labels)
        for of in [np.flatnonzero(labels == label)]
    ]
    which = np.concatenate([*kept, np.empty(0, np.int64)])
    which = which[np.argsort(-scores[which], kind="stable")]
    return {"boxes": boxes[which], "scores": scores[which], "labels": labels[which]}


def _detected(
    detect: Any, part: Array, top: int, left: int, shape: tuple[int, int]
) -> tuple[Array, Array, Array]:
    """Return boxes in cells of the scene, scores and labels of one window."""
    part = np.asarray(part)
    detected = detect(part[None])
    rows, columns = part.shape[:2]
    try:
        (result,) = detected
        scores = np.asarray(result["scores"], np.float32)
        labels = np.asarray(result["labels"], np.int64).reshape(scores.shape)
        boxes = np.asarray(result["boxes"], np.float32).reshape(len(scores), 4)
    except (LookupError, TypeError, ValueError) as error:
        raise DataError(
            "detect_scene, detect: expected a list with a dict of boxes (k, 4), scores (k,) and "
            f"labels (k,), found {detected!r:.80}"
        ) from error
    boxes = boxes * [columns, rows, columns, rows]
    inner = np.array([left > 0, top > 0, left + columns < shape[1], top + rows < shape[0]])
    edges = np.concatenate([boxes[:, :2] < 1, boxes[:, 2:] > np.array([columns, rows]) - 1], axis=1)
    entire = ~(edges & inner).any(axis=1)
    moved = np.add(boxes, [left, top, left, top]).astype(np.float32)[entire]
    return moved, scores[entire], labels[entire]
