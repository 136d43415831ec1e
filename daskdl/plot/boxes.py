"""Boxes drawn into an image, each with what it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from daskdl.data.image.pillow import need_pillow
from daskdl.errors import ShapeError
from daskdl.plot.pixels import as_picture

if TYPE_CHECKING:
    from PIL.Image import Image

#: Of the first classes, told apart by most eyes (P. Green-Armytage, A Colour Alphabet, 2010).
COLOURS = ("#ff5005", "#0075dc", "#2bce48", "#ffa405", "#740aff", "#94ffb5", "#990000", "#00998f")


def boxes(
    image: ArrayLike,
    boxes: ArrayLike,
    labels: Sequence[int] | None = None,
    scores: Sequence[float] | None = None,
    *,
    names: Sequence[str] | None = None,
    fractions: bool = False,
) -> Image:
    """Draw boxes into an image.

    Parameters
    ----------
    image : uint8 (H, W, C), or floats from 0 to 1
        Of 1 or 3 channels; not changed.
    boxes : (k, 4)
        Left, top, right and bottom edge, in pixels.
    labels : (k,) int, optional
        Each class has a colour of its own.
    scores : (k,), optional
        Written beside each box.
    names : sequence of str, optional
        Of the classes, to be written instead of their numbers.
    fractions : bool
        Whether the boxes are fractions of width and height, as detectors give them.

    Returns
    -------
    PIL.Image.Image
        ``.save("x.png")`` writes it; notebooks show it.

    Raises
    ------
    ShapeError
        When the arrays do not fit together, or this is no image.

    Examples
    --------
    >>> image = np.zeros((40, 60, 3), np.uint8)
    >>> boxes(image, [[5, 5, 30, 20]], labels=[1], scores=[0.9], names=["cat", "dog"]).size
    (60, 40)
    """
    need_pillow("plot.boxes")
    from PIL import ImageDraw, ImageFont

    picture = as_picture("boxes", image)
    edges = np.asarray(boxes, np.float64).reshape(-1, 4) if np.size(boxes) else np.zeros((0, 4))
    if fractions:
        edges = edges * np.tile(picture.size, 2)
    for what, column in (("labels", labels), ("scores", scores)):
        if column is not None and len(column) != len(edges):
            raise ShapeError(
                f"plot.boxes: {what}: expected one for each of {len(edges)} boxes, found "
                f"{len(column)}; give as many, or none"
            )
    pen, size = ImageDraw.Draw(picture), max(10, min(picture.size) // 20)
    line, font = max(1, min(picture.size) // 150), ImageFont.load_default(size)
    for i, box in enumerate(edges):
        label = None if labels is None else int(labels[i])
        colour = COLOURS[(label or 0) % len(COLOURS)]
        pen.rectangle([round(v) for v in box.tolist()], outline=colour, width=line)
        text = _text(label, names, None if scores is None else scores[i])
        if text:
            left, top = max(box[0], 0), max(box[1] - size - 4, 0)
            place = pen.textbbox((left + 2, top), text, font=font)
            pen.rectangle((left, top, place[2] + 2, place[3] + 2), fill=colour)
            pen.text((left + 2, top), text, fill="white", font=font)
    return picture


def _text(label: int | None, names: Sequence[str] | None, score: Any) -> str:
    known = label is not None and names is not None and 0 <= label < len(names)
    name = "" if label is None else names[label] if known and names is not None else str(label)
    return " ".join(part for part in (name, "" if score is None else f"{score:.2f}") if part)
