"""Decoding: bytes of JPEG, PNG, WebP and other files become uint8 images."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from daskdl.data.image.arguments import one_of
from daskdl.data.image.images import Images
from daskdl.data.image.transform import Transform
from daskdl.errors import DataError, SettingsError, ShapeError, needed

#: Modes of decoded images, and their channels.
MODES = {"RGB": 3, "L": 1, "RGBA": 4}

#: Pillow's modes with more than 8 bits in a channel: to make bytes of them would lose most.
DEEP = ("I", "F", "I;16", "I;16L", "I;16B", "I;16N")


def decode(
    record: bytes,
    mode: str = "RGB",
    *,
    at_least: int | None = None,
    upright: bool = False,
    name: str = "image",
) -> NDArray[np.uint8]:
    """Decode one image with Pillow, whose JPEG decoder is libjpeg-turbo.

    Parameters
    ----------
    record : bytes
        A file's content.
    mode : "RGB", "L" (gray) or "RGBA"
    at_least : int, optional
        A JPEG whose shorter side is at least twice this is decoded at 1/2, 1/4 or 1/8 of its size,
        but not below this. That is several times faster; use it if images are resized anyway.
    upright : bool
        Turn and mirror the image as a camera's EXIF orientation says.
    name : str
        Name of the record in errors.

    Returns
    -------
    uint8 (H, W, C)

    Raises
    ------
    DataError
        When the record is not an image, is truncated, has more than 8 bits in a channel, or claims
        so many pixels that Pillow suspects an attack.

    Examples
    --------
    >>> import io
    >>> from PIL import Image
    >>> file = io.BytesIO()
    >>> Image.new("RGB", (8, 6), "red").save(file, "PNG")
    >>> decode(file.getvalue()).shape, Decode("L")(file.getvalue()).shape
    ((6, 8, 3), (6, 8, 1))
    """
    pixels, _ = _decode(record, mode, at_least, upright, name)
    return pixels


@dataclass(frozen=True)
class Decode(Transform):
    """Decode the bytes of each record; the first step of a pipeline.

    Boxes are in pixels of the whole image; they shrink if it is decoded smaller.

    Parameters
    ----------
    mode, at_least, upright :
        See :func:`decode`. With masks ``at_least`` changes nothing.
    names : str, optional
        Column of the batch with the records' names for errors; by default their numbers.
    """

    mode: str = "RGB"
    at_least: int | None = None
    upright: bool = False
    names: str | None = None
    decodes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        one_of("Decode: mode", self.mode, tuple(MODES))
        if self.at_least is not None and self.at_least < 1:
            raise SettingsError(f"Decode: at_least: expected at least 1, found {self.at_least!r}")

    def apply(self, images: Images, rng: np.random.Generator) -> None:
        """Decode the records."""
        if images.records is None:
            raise ShapeError("Decode: expected bytes, found images; leave it out")
        at_least = None if images.has_masks else self.at_least
        if self.names is None:
            names: Any = [f"record {i} of the batch" for i in range(len(images.records))]
        elif self.names in images.columns:
            names = images.columns[self.names]
        else:
            raise ShapeError(
                f"Decode: names: expected the records' names in column {self.names!r}, found "
                f"columns {', '.join(map(repr, images.columns))}; name a column that there is"
            )
        decoded = [
            _decode(record, self.mode, at_least, self.upright, name)
            for record, name in zip(images.records, names, strict=True)
        ]
        images.replace([pixels for pixels, _ in decoded])
        images.records = None
        images.check_masks()
        if images.boxes is not None:
            images.boxes.scale(images.sizes / np.array([whole for _, whole in decoded]))


def _decode(
    record: bytes, mode: str, at_least: int | None, upright: bool, name: str
) -> tuple[NDArray[np.uint8], tuple[int, int]]:
    """Return the pixels, and the height and width of the whole image."""
    need_pillow(name)
    from PIL import Image, ImageOps, UnidentifiedImageError

    if not isinstance(record, bytes | bytearray | memoryview):
        raise DataError(
            f"{name}: expected the bytes of an image, found {type(record).__name__}"
            "; leave Decode out where images are decoded already"
        )
    try:
        with Image.open(io.BytesIO(record)) as image:
            if image.mode in DEEP:
                raise DataError(
                    f"{name}: expected 8 bits in a channel, found {image.format} of mode "
                    f"{image.mode}; read it with imageio and scale it to uint8 or float32"
                )
            width, height = image.size
            if at_least is not None:
                shrunk = at_least / min(width, height)
                if shrunk <= 0.5:
                    image.draft(None, (int(np.ceil(width * shrunk)), int(np.ceil(height * shrunk))))
            upended: Any = ImageOps.exif_transpose(image) if upright else image
            if upright and (upended.width > upended.height) != (image.width > image.height):
                width, height = height, width
            pixels = np.array(upended if upended.mode == mode else upended.convert(mode))
    except DataError:
        raise
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError) as error:
        shown = bytes(record[:8])
        # Pillow's own words have the address of an object.
        unknown = isinstance(error, UnidentifiedImageError)
        reason = "Pillow knows no such format" if unknown else error
        raise DataError(
            f"{name}: expected a whole image file, found {len(record)} bytes that begin with "
            f"{shown!r} and cannot be decoded ({reason})"
            "; leave such records out by from_*(decode=..., on_error='skip')"
        ) from error
    return (pixels if pixels.ndim == 3 else pixels[..., None]), (height, width)


def need_pillow(purpose: str) -> None:
    """Raise a MissingExtraError that begins with ``purpose`` unless Pillow is installed."""
    with needed(
        f"{purpose}: expected Pillow, which decodes and draws images, found it not installed; "
        "pip install 'daskdl[images]'"
    ):
        import PIL.Image  # noqa: F401
