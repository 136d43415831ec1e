"""Pictures for people: boxes drawn into an image, contact sheets of queries and results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from daskdl.data.image.decode import need_pillow
from daskdl.errors import ShapeError

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["boxes", "contact_sheet"]


def as_picture(name: str, image: ArrayLike) -> Image:
    """Return an image uint8 (H, W, C), or floats from 0 to 1, as a new RGB picture.

    Raises
    ------
    ShapeError
        When it is no image of 1 or 3 channels.
    """
    need_pillow(f"plot.{name}")
    from PIL import Image

    pixels = np.asarray(image)
    pixels = pixels[..., None] if pixels.ndim == 2 else pixels
    if pixels.ndim != 3 or pixels.shape[2] not in (1, 3) or not pixels.size:
        raise ShapeError(
            f"plot.{name}: expected an image (height, width, 1 or 3), found {np.shape(image)}"
            "; take one image of a batch, and put its channels last"
        )
    if pixels.dtype != np.uint8:
        pixels = np.rint(255 * np.clip(np.nan_to_num(pixels), 0, 1)).astype(np.uint8)
    return Image.fromarray(np.repeat(pixels, 3 // pixels.shape[2], axis=2))


#: Colours of classes that most people can distinguish (P. Green-Armytage, A Colour Alphabet, 2010).
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
        1 or 3 channels; the array is not changed.
    boxes : (k, 4)
        Left, top, right and bottom edge, in pixels.
    labels : (k,) int, optional
        Class of each box, which selects its colour.
    scores : (k,), optional
        Score of each box, written at it.
    names : sequence of str, optional
        Names of classes, written in place of their numbers.
    fractions : bool
        Whether the boxes are fractions of width and height, as detectors return them.

    Returns
    -------
    PIL.Image.Image
        ``.save("x.png")`` writes it; notebooks show it.

    Raises
    ------
    ShapeError
        When the lengths of the arrays differ, or ``image`` is no image.

    Examples
    --------
    >>> image = np.zeros((40, 60, 3), np.uint8)
    >>> boxes(image, [[5, 5, 30, 20]], labels=[1], scores=[0.9], names=["cat", "dog"]).size
    (60, 40)
    """
    picture = as_picture("boxes", image)
    from PIL import ImageDraw, ImageFont

    edges = np.asarray(boxes, np.float64).reshape(-1, 4) if np.size(boxes) else np.zeros((0, 4))
    if fractions:
        edges = edges * np.tile(picture.size, 2)
    for name, column in (("labels", labels), ("scores", scores)):
        if column is not None and len(column) != len(edges):
            raise ShapeError(
                f"plot.boxes: {name}: expected one for each of {len(edges)} boxes, found "
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


#: Pixels between pictures, and height of a caption.
GAP, CAPTION = 6, 16


def contact_sheet(
    queries: Sequence[ArrayLike],
    found: Sequence[Sequence[ArrayLike]],
    captions: Sequence[Sequence[object]] | None = None,
    *,
    side: int = 96,
) -> Image:
    """Draw queries on the left, and their nearest images to the right of each.

    Parameters
    ----------
    queries : q images, uint8 (H, W, C) or floats from 0 to 1, of any sizes
    found : q sequences of images
        Results for each query, the nearest first.
    captions : q sequences, optional
        Texts below the results, such as the distances of
        :meth:`daskdl.search.HammingIndex.search`.
    side : int
        Side of the square in which each picture is drawn, in pixels.

    Returns
    -------
    PIL.Image.Image
        ``.save("x.png")`` writes it; notebooks show it.

    Raises
    ------
    ShapeError
        When ``found`` or ``captions`` lack a row for a query, or a picture is no image.

    Examples
    --------
    >>> white, black = np.full((8, 8, 3), 255, np.uint8), np.zeros((8, 8, 3), np.uint8)
    >>> sheet = contact_sheet([white], [[white, black]], [["0", "24"]], side=32)
    >>> sheet.size
    (126, 60)
    """
    need_pillow("plot.contact_sheet")
    from PIL import Image, ImageDraw, ImageFont

    for name, rows in (("found", found), ("captions", captions)):
        if rows is not None and len(rows) != len(queries):
            raise ShapeError(
                f"plot.contact_sheet: {name}: expected a row for each of {len(queries)} queries, "
                f"found {len(rows)}; give an empty one for a query without any"
            )
    below = CAPTION if captions is not None else 0
    columns, step = 1 + max(map(len, found), default=0), side + GAP
    size = columns * step + 2 * GAP, max(1, len(queries)) * (step + below) + GAP
    sheet, font = Image.new("RGB", size, "white"), ImageFont.load_default(11)
    pen = ImageDraw.Draw(sheet)
    for row, (query, others) in enumerate(zip(queries, found, strict=True)):
        top = GAP + row * (step + below)
        for column, image in enumerate([query, *others]):
            picture = as_picture("contact_sheet", image)
            scale = side / max(picture.size)
            picture = picture.resize([max(1, round(n * scale)) for n in picture.size])
            left = GAP + column * step + (GAP if column else 0)
            corner = left + (side - picture.width) // 2, top + (side - picture.height) // 2
            sheet.paste(picture, corner)
            if not column:
                frame = left - 2, top - 2, left + side + 1, top + side + 1
                pen.rectangle(frame, outline="black", width=2)
            elif captions is not None and column <= len(captions[row]):
                text = str(captions[row][column - 1])
                pen.text((left + 2, top + side + 1), text, fill="black", font=font)
    return sheet
