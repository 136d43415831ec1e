"""Transform: a step that images go through, and pipelines of such steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from daskdl.data.image.arguments import pair
from daskdl.data.image.boxes import Boxes
from daskdl.data.image.images import Images
from daskdl.data.image.pixels import stacked_images
from daskdl.errors import SettingsError, ShapeError

Rng = np.random.Generator | None


@dataclass(frozen=True)
class Columns:
    """Names of a batch's columns for images, and for boxes and masks that move with them.

    Examples
    --------
    >>> from daskdl.data.image import CenterCrop
    >>> batch = {"picture": np.zeros((2, 20, 30, 3), np.uint8)}
    >>> CenterCrop(16)(batch, columns=Columns(images="picture"))["picture"].shape
    (2, 16, 16, 3)
    """

    images: str = "x"
    boxes: str = "boxes"
    masks: str = "masks"
    #: Arrays that there are of each box.
    of_boxes: tuple[str, ...] = ("labels", "ignore")


class Transform(ABC):
    """A step that images go through, alone or in a batch, with their boxes and masks.

    Join steps by ``|`` or in a list for :class:`Pipeline`, and pass them to
    :meth:`daskdl.data.SampleSet.map`. A subclass changes :class:`~daskdl.data.image.images.Images`
    in :meth:`apply`.

    Examples
    --------
    >>> class Invert(Transform):
    ...     def apply(self, images, rng):
    ...         images.replace([255 - image for image in images.pixels])
    >>> Invert()(np.zeros((1, 2, 1), np.uint8))[..., 0]
    array([[255, 255]], dtype=uint8)
    >>> shape = Expand(fill=0.5) | Affine(degrees=(-5, 5)) | RandomResizedCrop(9) | RandomCrop(8)
    >>> colours = ColorJitter(brightness=0.2) | Lighting() | ChannelOrder("random")
    >>> last, rng = RandomErasing() | Pad(9), np.random.default_rng(0)
    >>> (shape | colours | last)(np.zeros((2, 20, 30, 3), np.uint8), rng=rng).shape
    (2, 9, 9, 3)
    """

    #: Whether it draws at random, and so needs ``rng``.
    random: ClassVar[bool] = False
    #: Whether it takes bytes that are not decoded yet.
    decodes: ClassVar[bool] = False

    @abstractmethod
    def apply(self, images: Images, rng: np.random.Generator) -> None:
        """Change the images of a batch."""

    @property
    def name(self) -> str:
        """Name in errors."""
        return type(self).__name__

    @property
    def needs_rng(self) -> bool:
        """Whether it needs a Generator."""
        return self.random

    def run(self, images: Images, rng: np.random.Generator) -> None:
        """Check the images, and apply it; errors have its name."""
        images.name = self.name
        if images.records is not None and not self.decodes:
            raise ShapeError(f"{self.name}: expected images, found bytes; put Decode() before it")
        self.apply(images, rng)

    def __or__(self, other: Transform) -> Pipeline:
        if not isinstance(other, Transform):
            return NotImplemented
        return Pipeline([self, other])

    def __call__(self, batch: Any, rng: Rng = None, columns: Columns | None = None) -> Any:
        """Transform a batch, images or one image.

        Parameters
        ----------
        batch : dict, array (N, H, W, C), sequence of (H, W, C), or array (H, W, C)
            In a dict the column ``x`` has the images. For each image ``boxes`` (k, 4) with
            ``labels`` and ``ignore`` (k,), and ``masks`` (H, W) or (H, W, K), move along if they
            exist; other columns do not change. Images are uint8 or float32, or bytes for
            :class:`~daskdl.data.image.Decode`.
        rng : numpy.random.Generator
            For random transforms; the same Generator gives the same images.
        columns : Columns, optional
            Other names of the columns.

        Returns
        -------
        like ``batch``
            One array if all images have one size, else an object array (N,) of images. The argument
            is not changed; results may be views of it if nothing was done.

        Raises
        ------
        ShapeError
            For images that are not such arrays.
        SettingsError
            For a missing ``rng``.
        DataError
            For bytes that cannot be decoded.
        """
        if rng is None and self.needs_rng:
            raise SettingsError(
                f"{self.name}: expected a numpy Generator to draw from, found rng=None; hand in "
                "numpy.random.default_rng(seed)"
            )
        # Not drawn from: those that do have been refused.
        rng = np.random.default_rng(0) if rng is None else rng
        if isinstance(batch, dict):
            return self._batch(batch, rng, columns or Columns())
        if isinstance(batch, bytes) or (isinstance(batch, np.ndarray) and batch.ndim == 3):
            return self._images([batch], rng)[0]
        if isinstance(batch, np.ndarray) and batch.ndim == 2 and batch.dtype != object:
            raise ShapeError(
                f"{self.name}: expected an image (height, width, channels), found {batch.shape}; "
                "add the axis of channels, image[..., None]"
            )
        return self._images(batch, rng)

    def _images(self, pixels: Any, rng: np.random.Generator) -> Any:
        return self._batch({"x": pixels}, rng, Columns())["x"]

    def _batch(
        self, batch: dict[str, Any], rng: np.random.Generator, columns: Columns
    ) -> dict[str, Any]:
        if columns.images not in batch:
            raise ShapeError(
                f"{self.name}: expected the images in column {columns.images!r}, found columns "
                f"{', '.join(map(repr, batch))}; tell the names by Columns(images=...)"
            )
        pixels, boxes, masks = batch[columns.images], None, batch.get(columns.masks)
        if not len(pixels):
            return self._nothing(batch, rng, columns)
        for key, column in ((columns.masks, masks), (columns.boxes, batch.get(columns.boxes))):
            if column is not None and len(column) != len(pixels):
                raise ShapeError(
                    f"{self.name}: {key}: expected entries of {len(pixels)} images, found "
                    f"{len(column)}; give one entry for each image"
                )
        if columns.boxes in batch:
            more = {key: batch[key] for key in columns.of_boxes if key in batch}
            boxes = Boxes(batch[columns.boxes], more, self.name)
        images = Images(pixels, boxes, masks, self.name, batch)
        self.run(images, rng)
        result = {**batch, columns.images: stacked_images(images.pixels)}
        if images.boxes is not None:
            moved = images.boxes.ragged()
            result |= {columns.boxes: moved.pop("boxes"), **moved}
        if images.masks is not None:
            result[columns.masks] = stacked_images(images.masks)
        return result

    def _nothing(
        self, batch: dict[str, Any], rng: np.random.Generator, columns: Columns
    ) -> dict[str, Any]:
        """Return a batch without images, in their shape."""
        pixels = np.asarray(batch[columns.images])
        if pixels.ndim != 4:
            return dict(batch)
        one = self._images(np.zeros((1, *pixels.shape[1:]), pixels.dtype), rng)
        return {**batch, columns.images: one[:0]}


@dataclass(frozen=True)
class Sized(Transform):
    """Base of transforms whose first argument is a size: an int, or (rows, columns)."""

    size: int | tuple[int, int]

    def __post_init__(self) -> None:
        _ = self.shape

    @property
    def shape(self) -> NDArray[np.int64]:
        """Rows and columns, (2,)."""
        return np.array(pair(f"{self.name}: size", self.size))


class Pipeline(Transform):
    """Several steps in a row.

    Parameters
    ----------
    steps : iterable of Transform

    Examples
    --------
    >>> from daskdl.data.image import CenterCrop, Normalize, Resize
    >>> steps = Resize(8) | CenterCrop(6) | Normalize(mean=0.5, std=0.25)
    >>> steps(np.full((2, 10, 12, 3), 255, np.uint8))[0, 0, 0].round(3)
    array([2., 2., 2.], dtype=float32)
    """

    def __init__(self, steps: Iterable[Transform]) -> None:
        self.steps: tuple[Transform, ...] = ()
        for step in steps:
            if not isinstance(step, Transform):
                raise SettingsError(
                    f"Pipeline: expected transforms of images, found {step!r}; PerImage(function) "
                    "makes one of a function of an image"
                )
            self.steps += step.steps if isinstance(step, Pipeline) else (step,)

    def __repr__(self) -> str:
        return " | ".join(map(repr, self.steps)) or "Pipeline([])"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pipeline) and self.steps == other.steps

    def __hash__(self) -> int:
        return hash(self.steps)

    @property
    def decodes(self) -> bool:  # type: ignore[override]
        """Whether the first step takes bytes."""
        return bool(self.steps) and self.steps[0].decodes

    @property
    def needs_rng(self) -> bool:
        """Whether any step draws at random."""
        return any(step.needs_rng for step in self.steps)

    def apply(self, images: Images, rng: np.random.Generator) -> None:
        """Apply all steps to the images."""
        for step in self.steps:
            step.run(images, rng)
