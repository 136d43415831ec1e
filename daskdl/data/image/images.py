"""Images: a batch on its way through transforms, with boxes and masks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.data.image.boxes import Boxes
from daskdl.data.image.pixels import Array, Ints, check, lay, nearest, room, rows_contiguous, warped
from daskdl.errors import SettingsError, ShapeError
from daskdl.kernels.pixels.resample import (
    COLUMNS,
    FILTERS,
    HEIGHT,
    LEFT,
    MIRRORED,
    ROWS,
    TOP,
    UPSIDE_DOWN,
    WIDTH,
    H,
    W,
    X,
    Y,
    resample,
)
from daskdl.kernels.pixels.warp import warp


class Images:
    """Images of one dtype and number of channels, each of its own size.

    Cutting, resizing and mirroring are only noted; :attr:`pixels` does them, in one pass over the
    pixels that the result needs. The result has the bits of the single steps.

    Parameters
    ----------
    pixels : sequence of images (H, W, C), uint8 or float32
        At least one. Or an array (N, H, W, C), or bytes to decode first. They are not changed.
    boxes : Boxes, optional
        Move with the images.
    masks : sequence of arrays (H, W) or (H, W, K), optional
        Move with the images, too; no values are mixed.
    name : str
        Name for errors.
    columns : mapping of str to column, optional
        All columns of the batch, for transforms that read them.

    Examples
    --------
    >>> images = Images([np.zeros((20, 30, 3), np.uint8), np.zeros((8, 6, 3), np.uint8)])
    >>> len(images), images.sizes.tolist()
    (2, [[20, 30], [8, 6]])
    """

    def __init__(
        self,
        pixels: Sequence[Array] | Array,
        boxes: Boxes | None = None,
        masks: Sequence[Array] | None = None,
        name: str = "Images",
        columns: Mapping[str, Any] | None = None,
    ) -> None:
        self.name, self.boxes, self.columns = name, boxes, columns or {}
        self._masks = None if masks is None else list(masks)
        #: Bytes that are not decoded yet.
        self.records: list[Any] | None = None
        self._pixels: Any
        if isinstance(pixels[0], bytes):
            self.records, self._pixels = list(pixels), []
            return
        self.replace(pixels)
        self.check_masks()

    def check_masks(self) -> None:
        """Raise ShapeError unless the masks are of the images' sizes."""
        for i, (mask, image) in enumerate(zip(self._masks or (), self._pixels, strict=False)):
            if np.ndim(mask) not in (2, 3) or np.shape(mask)[:2] != image.shape[:2]:
                raise ShapeError(
                    f"{self.name}: mask {i}: expected the image's {image.shape[:2]} first, found "
                    f"{np.shape(mask)}; give each mask the height and width of its image"
                )

    def __len__(self) -> int:
        return len(self._pixels)

    # --- what they are

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the pixels: uint8 or float32."""
        return self._pixels[0].dtype

    @property
    def channels(self) -> int:
        """Numbers of a pixel."""
        return int(self._pixels[0].shape[2])

    @property
    def white(self) -> float:
        """Value of white, the unit of colours: 255 for uint8, 1 for float32."""
        return 255.0 if self.dtype == np.uint8 else 1.0

    @property
    def sizes(self) -> Ints:
        """Height and width of each, (N, 2)."""
        return self._geometry[:, [H, W]]

    @property
    def pixels(self) -> Sequence[Array] | Array:
        """The images now; one array if all have one size. Do not write into them."""
        self._settle()
        return self._pixels

    @property
    def masks(self) -> list[Array] | None:
        """The masks now."""
        self._settle()
        return self._masks

    @property
    def has_masks(self) -> bool:
        """Whether masks move along."""
        return self._masks is not None

    # --- what moves boxes and masks along

    def crop(self, windows: Ints, keep: Callable[[Boxes, Array], Array] | None = None) -> None:
        """Cut a window out of each: (N, 4) of top, left, height, width.

        Boxes are cut as well. ``keep(boxes, edges of the windows)`` says which boxes stay; by
        default those with a part in the window.
        """
        height, width = self.sizes.T
        top, left, rows, columns = np.asarray(windows, np.int64).T
        wrong = (
            (top < 0) | (left < 0) | (rows < 1) | (columns < 1)
            | (top + rows > height) | (left + columns > width)
        )  # fmt: skip
        if wrong.any():
            i = int(np.flatnonzero(wrong)[0])
            raise ShapeError(
                f"{self.name}: expected a window within image {i} of {height[i]} x {width[i]}, "
                f"found {rows[i]} x {columns[i]} at row {top[i]}, column {left[i]}; make it "
                "larger before, as Resize and Pad do"
            )
        g = self._geometry
        g[:, Y] += np.where(g[:, UPSIDE_DOWN], height - top - rows, top)
        g[:, X] += np.where(g[:, MIRRORED], width - left - columns, left)
        g[:, H], g[:, W] = rows, columns
        if self.boxes is not None:
            edges = np.stack([left, top, left + columns, top + rows], 1)
            self.boxes.cut(edges, keep)

    def resize(self, sizes: Ints, filter: str = "bilinear", antialias: bool = True) -> None:
        """Resize each image to (height, width), (N, 2)."""
        if filter not in FILTERS:
            raise SettingsError(
                f"{self.name}: filter: expected {', '.join(FILTERS)}, found {filter!r}"
            )
        before = self.sizes
        sizes = np.broadcast_to(np.asarray(sizes, np.int64), before.shape)
        if (before == sizes).all():
            return
        g = self._geometry
        if (g[:, [ROWS, COLUMNS]] != g[:, [HEIGHT, WIDTH]]).any() or g[:, UPSIDE_DOWN:].any():
            self._settle()  # two filters in a row are not one
            g = self._geometry
        g[:, TOP] += g[:, Y]
        g[:, LEFT] += g[:, X]
        g[:, [HEIGHT, WIDTH]] = before
        g[:, [ROWS, COLUMNS]] = g[:, [H, W]] = sizes
        g[:, [Y, X]] = 0
        self._filter = filter, antialias
        if self.boxes is not None:
            self.boxes.scale(sizes / before)

    def flip(self, which: NDArray[np.bool_], axis: int) -> None:
        """Mirror images where ``which`` (N,) is true, upside down (axis 0) or left to right (1)."""
        self._geometry[:, UPSIDE_DOWN + axis] ^= np.asarray(which, bool)
        if self.boxes is not None:
            self.boxes.mirror(np.asarray(which, bool), self.sizes[:, axis], axis)

    def paste(self, sizes: Ints, corners: Ints, fill: Any) -> None:
        """Lay each image onto a canvas of one colour.

        Parameters
        ----------
        sizes : int (N, 2)
            Sizes of the canvases.
        corners : int (N, 2)
            Row and column of the canvas for the image's first pixel. They may be negative; pixels
            outside of the canvas are lost.
        fill : (C,) or a single number
            Colour in fractions of white.
        """
        colour = self.colour(fill)
        sizes = np.broadcast_to(np.asarray(sizes, np.int64), (len(self), 2))
        corners = np.asarray(corners, np.int64)
        self._settle()
        canvases = room(sizes, self.channels, self.dtype)
        for canvas, image, corner in zip(canvases, self._pixels, corners, strict=True):
            lay(canvas, image, corner, colour)
        for i, mask in enumerate(self._masks or ()):
            wide = np.empty((*map(int, sizes[i]), *mask.shape[2:]), mask.dtype)
            lay(wide, mask, corners[i], np.zeros((), mask.dtype))
            self._masks[i] = wide  # type: ignore[index]
        self.replace(canvases)
        if self.boxes is not None:
            self.boxes.shift(corners[:, ::-1])
            edges = np.concatenate([np.zeros_like(sizes), sizes[:, ::-1]], 1)
            self.boxes.clip(edges)

    def map_affinely(self, forward: Array, sizes: Ints, colour: Array) -> None:
        """Map images by (N, 2, 3), from columns and rows of an image to the result's.

        Parameters
        ----------
        forward : float (N, 2, 3)
        sizes : int (N, 2)
            Heights and widths of the results.
        colour : (C,)
            Colour outside of the image, in the images' dtype.
        """
        self._settle()
        square = np.concatenate([forward, np.broadcast_to([[[0.0, 0, 1]]], (len(self), 1, 3))], 1)
        half = np.array([[1, 0, 0.5], [0, 1, 0.5], [0, 0, 1]])  # from a pixel's centre to its edge
        inverses = (np.linalg.inv(half) @ np.linalg.inv(square) @ half)[:, :2]
        results = room(sizes, self.channels, self.dtype)
        warp([np.ascontiguousarray(p) for p in self._pixels], inverses, list(results), colour)
        for i, mask in enumerate(self._masks or ()):
            self._masks[i] = warped(mask, inverses[i], sizes[i])  # type: ignore[index]
        self.replace(results)
        if self.boxes is not None:
            self.boxes.map_affinely(forward)
            self.boxes.clip(np.concatenate([np.zeros_like(sizes), sizes[:, ::-1]], 1))

    # --- some of them

    def take(self, which: Ints) -> Images:
        """Return some images, (n,) numbers, with their boxes and masks."""
        pixels, masks = self.pixels, self.masks
        boxes = None if self.boxes is None else self.boxes.take(which)
        some = None if masks is None else [masks[i] for i in which]
        return Images([pixels[i] for i in which], boxes, some, self.name)

    def put(self, which: Ints, others: Images) -> None:
        """Replace the images that :meth:`take` returned."""
        pixels, masks = list(self.pixels), self.masks
        for i, image in zip(which, others.pixels, strict=True):
            pixels[i] = image
        if masks is not None:
            for i, mask in zip(which, others.masks or (), strict=True):
                masks[i] = mask
        if self.boxes is not None and others.boxes is not None:
            self.boxes.put(which, others.boxes)
        self.replace(pixels)

    # --- what changes pixels

    def replace(self, pixels: Sequence[Array] | Array) -> None:
        """Replace the pixels; sizes may differ if there are no boxes or masks.

        Raises
        ------
        ShapeError
            Unless all are uint8 or all float32, (H, W, C) with one C.
        """
        n = len(pixels)
        if isinstance(pixels, np.ndarray) and pixels.ndim == 4:
            self._pixels = pixels
            check(pixels, self.name)
            sizes = np.broadcast_to(np.array(pixels.shape[1:3]), (n, 2))
        else:
            self._pixels = list(pixels)
            check(self._pixels, self.name)
            sizes = np.array([image.shape[:2] for image in self._pixels], np.int64).reshape(n, 2)
        self._geometry = np.zeros((n, 12), np.int64)
        for columns in ([HEIGHT, WIDTH], [ROWS, COLUMNS], [H, W]):
            self._geometry[:, columns] = sizes
        self._filter = "bilinear", True

    def scale(self, scale: Array, shift: Array) -> None:
        """Make values float32: value times ``scale`` (C,) plus ``shift`` (C,)."""
        self._settle(np.asarray(scale, np.float32), np.asarray(shift, np.float32))

    def colour(self, fractions: Any) -> Array:
        """Return a colour (C,), given in fractions of white, in the images' dtype."""
        values = np.asarray(fractions, float)
        if values.shape not in ((), (1,), (self.channels,)):
            raise SettingsError(
                f"{self.name}: expected a colour of {self.channels} numbers, found {fractions!r}"
                "; give one fraction of white for each channel"
            )
        if self.dtype == np.uint8:
            if values.min() < 0 or values.max() > 1:
                raise SettingsError(
                    f"{self.name}: expected colours as fractions of white, 0 to 1, found "
                    f"{fractions!r}; divide levels by 255"
                )
            values = np.rint(255 * values)
        return np.broadcast_to(values.astype(self.dtype), (self.channels,))

    def _settle(self, scale: Array | None = None, shift: Array | None = None) -> None:
        """Apply the noted geometry and scale the values, in one pass."""
        g = self._geometry
        moved = (
            (g[:, [HEIGHT, WIDTH]] != g[:, [H, W]]).any()
            or (g[:, [HEIGHT, WIDTH]] != g[:, [ROWS, COLUMNS]]).any()
            or g[:, UPSIDE_DOWN:].any()
        )
        if (not moved and scale is None) or not len(self):
            return
        sources: Sequence[Array] | Array
        if isinstance(self._pixels, np.ndarray):
            sources = rows_contiguous(self._pixels)
        else:
            sources = [rows_contiguous(image) for image in self._pixels]
        dtype = self.dtype if scale is None else np.dtype(np.float32)
        results = room(self.sizes, self.channels, dtype)
        filter, antialias = self._filter
        resample(sources, g, results, filter=filter, antialias=antialias, scale=scale, shift=shift)
        if moved and self._masks is not None:
            self._masks = [nearest(m, row) for m, row in zip(self._masks, g, strict=True)]
        self.replace(results)
