"""Boxes around the objects in a batch of images, each with its label and other columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.data.ragged import Ragged
from daskdl.errors import ShapeError

Array = NDArray[Any]


class Boxes:
    """Boxes of all images of a batch in one array; all are moved at once.

    Parameters
    ----------
    edges : Ragged (N) of (k, 4)
        Left, top, right and bottom edge of each image's boxes, in pixels; a box around the whole
        image is (0, 0, width, height). Also sequences of N arrays.
    columns : mapping of str to Ragged (N) of (k, ...)
        Further columns of the boxes, such as labels; dropped boxes drop their rows.
    name : str
        Name for errors.

    Examples
    --------
    >>> boxes = Boxes([[[0, 0, 10, 10], [5, 5, 8, 9]], []], {"labels": [[1, 2], []]})
    >>> boxes.scale(np.array([[2.0, 1.0], [1.0, 1.0]]))
    >>> boxes.of(0), len(boxes)
    (array([[ 0.,  0., 10., 20.],
           [ 5., 10.,  8., 18.]], dtype=float32), 2)
    """

    def __init__(
        self, edges: Any, columns: Mapping[str, Any] | None = None, name: str = ""
    ) -> None:
        ragged = edges if isinstance(edges, Ragged) else Ragged.of(list(edges))
        #: float32 (K, 4)
        self.edges = np.array(ragged.values, np.float32)
        if self.edges.size == 0:
            self.edges = self.edges.reshape(0, 4)
        if self.edges.shape[1:] != (4,):
            raise ShapeError(
                f"{name}: boxes: expected (k, 4), left, top, right, bottom, found "
                f"(k, {', '.join(map(str, self.edges.shape[1:]))})"
                "; give each box as its four edges in pixels"
            )
        #: Number of the image of each box, (K,).
        self.owners = np.repeat(np.arange(len(ragged)), ragged.lengths)
        self.images = len(ragged)
        self.columns: dict[str, Array] = {}
        for key, column in (columns or {}).items():
            values = column if isinstance(column, Ragged) else Ragged.of(list(column))
            if not np.array_equal(values.lengths, ragged.lengths):
                i = int(np.argmax(values.lengths != ragged.lengths))
                raise ShapeError(
                    f"{name}: {key}: expected one for each box, image {i} has {ragged.lengths[i]} "
                    f"boxes and {values.lengths[i]} {key}; give as many, or none of the column"
                )
            self.columns[key] = values.values

    def __len__(self) -> int:
        return len(self.edges)

    def of(self, image: int) -> Array:
        """Return one image's boxes (k, 4)."""
        return self.edges[self.owners == image]

    def ragged(self) -> dict[str, Ragged]:
        """Return all columns of a batch; the boxes are ``boxes``."""
        counts = np.bincount(self.owners, minlength=self.images)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        return {
            key: Ragged(values, offsets)
            for key, values in [("boxes", self.edges), *self.columns.items()]
        }

    def take(self, which: Array) -> Boxes:
        """Return the boxes of some images, (n,) numbers."""
        every = self.ragged()
        edges = every.pop("boxes")[which]
        return Boxes(edges, {key: column[which] for key, column in every.items()})

    def put(self, which: Array, others: Boxes) -> None:
        """Replace the boxes of some images, (n,) numbers."""
        rest = ~np.isin(self.owners, which)
        owners = np.concatenate([self.owners[rest], np.asarray(which)[others.owners]])
        order = np.argsort(owners, kind="stable")
        self.owners = owners[order]
        self.edges = np.concatenate([self.edges[rest], others.edges])[order]
        for key, values in self.columns.items():
            self.columns[key] = np.concatenate([values[rest], others.columns[key]])[order]

    # --- each image's boxes are moved by its row of the argument

    def shift(self, by: Array) -> None:
        """Move them by (N, 2) columns and rows."""
        self.edges += np.tile(by, 2)[self.owners]

    def scale(self, by: Array) -> None:
        """Multiply them by (N, 2), of rows and columns."""
        self.edges *= np.tile(by[:, ::-1], 2)[self.owners]

    def mirror(self, which: NDArray[np.bool_], lengths: Array, axis: int) -> None:
        """Mirror the boxes of (N,) images along an axis of (N,) pixels; 0 are rows."""
        near, far = (1, 3) if axis == 0 else (0, 2)
        mine, length = which[self.owners], lengths[self.owners]
        a, b = length - self.edges[:, far], length - self.edges[:, near]
        self.edges[:, near] = np.where(mine, a, self.edges[:, near])
        self.edges[:, far] = np.where(mine, b, self.edges[:, far])

    def map_affinely(self, maps: Array) -> None:
        """Map the corners of the boxes by maps (N, 2, 3), and take the boxes around them."""
        corners = self.edges[:, [[0, 1], [2, 1], [0, 3], [2, 3]]]
        map_of_box = maps[self.owners]
        moved = np.einsum("kij,kcj->kci", map_of_box[:, :, :2], corners) + map_of_box[:, None, :, 2]
        self.edges = np.concatenate([moved.min(1), moved.max(1)], 1).astype(np.float32)

    def clip(self, windows: Array) -> None:
        """Clip the boxes to windows (N, 4), edges as of boxes, and drop empty boxes."""
        low, high = np.split(np.asarray(windows)[self.owners], 2, axis=1)
        self.edges = np.clip(self.edges, np.tile(low, 2), np.tile(high, 2)).astype(np.float32)
        self.keep(np.all(self.edges[:, 2:] > self.edges[:, :2], axis=1))

    def cut(self, windows: Array, keep: Callable[[Boxes, Array], Array] | None = None) -> None:
        """Keep the boxes that ``keep(self, windows)`` selects, relative to the windows' corners."""
        if keep is not None:
            self.keep(keep(self, windows))
        self.clip(windows)
        self.shift(-np.asarray(windows)[:, :2])

    def keep(self, which: Array) -> None:
        """Keep the boxes where ``which`` (K,) is true."""
        if not which.all():
            self.edges, self.owners = self.edges[which], self.owners[which]
            self.columns = {key: values[which] for key, values in self.columns.items()}


def centred(boxes: Boxes, windows: Array) -> Any:
    """Return a mask of the boxes with their centres in their image's window (N, 4)."""
    centre = (boxes.edges[:, :2] + boxes.edges[:, 2:]) / 2
    window_of_box = np.asarray(windows)[boxes.owners]
    return np.all((centre >= window_of_box[:, :2]) & (centre < window_of_box[:, 2:]), axis=1)


def area(edges: Array) -> Array:
    """Return the areas of boxes (..., 4)."""
    return np.prod(np.maximum(edges[..., 2:] - edges[..., :2], 0), axis=-1)


def iou(a: Array, b: Array) -> Array:
    """Return intersections over unions of boxes a (n, 4) and b (m, 4): (n, m)."""
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum(a[:, None, 2:], b[None, :, 2:])
    common = np.prod(np.maximum(high - low, 0), axis=-1)
    total = area(a)[:, None] + area(b)[None] - common
    return np.divide(common, total, out=np.zeros_like(common), where=total > 0)
