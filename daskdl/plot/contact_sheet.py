"""A contact sheet: in each row a query, and what was found for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from daskdl.data.image.pillow import need_pillow
from daskdl.errors import ShapeError
from daskdl.plot.pixels import as_picture

if TYPE_CHECKING:
    from PIL.Image import Image

#: Pixels between pictures, and height of a caption.
GAP, CAPTION = 6, 16


def contact_sheet(
    queries: Sequence[ArrayLike],
    found: Sequence[Sequence[ArrayLike]],
    captions: Sequence[Sequence[object]] | None = None,
    *,
    side: int = 96,
) -> Image:
    """Put queries on the left, and beside each what is nearest to it.

    Parameters
    ----------
    queries : q images, uint8 (H, W, C) or floats from 0 to 1, of any sizes
    found : q sequences of images
        The nearest first.
    captions : q sequences, optional
        Written below what was found, such as the distances of
        :meth:`daskdl.search.HammingIndex.search`.
    side : int
        Pixels of a place, into which pictures are fitted.

    Returns
    -------
    PIL.Image.Image
        ``.save("x.png")`` writes it; notebooks show it.

    Raises
    ------
    ShapeError
        When there is not a row for each query, or something is no image.

    Examples
    --------
    >>> white, black = np.full((8, 8, 3), 255, np.uint8), np.zeros((8, 8, 3), np.uint8)
    >>> sheet = contact_sheet([white], [[white, black]], [["0", "24"]], side=32)
    >>> sheet.size
    (126, 60)
    """
    need_pillow("plot.contact_sheet")
    from PIL import Image, ImageDraw, ImageFont

    for what, rows in (("found", found), ("captions", captions)):
        if rows is not None and len(rows) != len(queries):
            raise ShapeError(
                f"plot.contact_sheet: {what}: expected a row for each of {len(queries)} queries, "
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
