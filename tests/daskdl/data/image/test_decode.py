"""Decoding: encoded images come back, and records that cannot be decoded are named."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from daskdl.data.image import Decode, Resize, decode
from daskdl.errors import DataError, ShapeError
from tests.daskdl.data.image.pictures import file, labelled, photo, photos


def test_encoded_images_come_back():
    np.testing.assert_array_equal(decode(file(photo())), photo())
    close = decode(file(photo(), "JPEG", quality=95, subsampling=0)).astype(int)
    assert np.abs(close - photo()).mean() < 3
    gray = decode(file(photo()[..., 0]), "L")
    np.testing.assert_array_equal(gray, photo()[..., :1])
    np.testing.assert_array_equal(decode(file(photo()[..., 0])), photo()[..., [0, 0, 0]])
    assert decode(file(photo()), "RGBA").shape == (75, 100, 4)
    assert decode(file(photo(), "WEBP", lossless=True)).flags.writeable


def test_a_batch_of_records_of_any_size():
    records = np.empty(3, object)
    records[:] = [file(photo()), file(photo()[:40]), file(photo()[..., 1])]
    mixed = Decode()(records)
    assert [image.shape for image in mixed] == [(75, 100, 3), (40, 100, 3), (75, 100, 3)]
    result = (Decode() | Resize(30))({"x": records, "y": np.arange(3)})
    np.testing.assert_array_equal(result["x"], Resize(30)(mixed))
    np.testing.assert_array_equal(Decode()(file(photo())), photo())


def test_a_large_jpeg_is_decoded_smaller_and_its_boxes_with_it():
    large = np.asarray(Image.fromarray(photo()).resize((800, 600)))
    record = file(large, "JPEG", quality=95)
    assert decode(record, at_least=100).shape == (150, 200, 3)
    assert decode(record, at_least=75).shape == (75, 100, 3)
    assert decode(record, at_least=301).shape == (600, 800, 3)
    whole, small = Resize(75)(decode(record)), Resize(75)(decode(record, at_least=100))
    assert np.abs(whole.astype(int) - small).mean() < 3
    batch = {"x": [record], "boxes": [[[80, 40, 400, 300]]]}
    result = Decode(at_least=100)(batch)
    np.testing.assert_allclose(result["boxes"][0], [[20, 10, 100, 75]])
    masks = {"x": [record], "masks": np.zeros((1, 600, 800), np.uint8)}
    assert Decode(at_least=100)(masks)["x"].shape == (1, 600, 800, 3)


def test_cameras_that_were_turned():
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was held on its side
    record = file(photo(), exif=exif)
    np.testing.assert_array_equal(decode(record), photo())
    np.testing.assert_array_equal(decode(record, upright=True), np.rot90(photo(), -1))
    boxes = Decode(upright=True)({"x": [record], "boxes": [[[1, 2, 30, 40]]]})["boxes"][0]
    np.testing.assert_array_equal(boxes, [[1, 2, 30, 40]])


def deep() -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.full((4, 4), 40_000, np.uint16)).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("record", "says"),
    [
        (file(photo(), "JPEG")[:700], "truncated"),
        (file(photo())[:2000], r"found 2000 bytes that begin with b'\\x89PNG"),
        (b"", "found 0 bytes"),
        (
            b"not an image",
            r"begin with b.not an i. and cannot be decoded \(Pillow knows no such format\)",
        ),
        (file(photo())[:40] + bytes(3000), "cannot be decoded"),
        (deep(), "8 bits in a channel, found PNG of mode I;16"),
        ("photo.jpg", "the bytes of an image, found str"),
    ],
)
def test_records_that_cannot_be_decoded_are_named(record, says):
    with pytest.raises(DataError, match=f"a/b.jpg: expected .*{says}"):
        decode(record, name="a/b.jpg")


def test_the_record_of_a_batch_is_named():
    good = file(photo(), "JPEG")
    with pytest.raises(DataError, match="record 2 of the batch: expected a whole image file"):
        Decode()([good, good, good[:-300], good])
    named = {"x": [good, good[:500]], "name": np.array(["a.jpg", "b.jpg"])}
    with pytest.raises(DataError, match=r"^b.jpg: expected a whole image file"):
        Decode(names="name")(named)
    with pytest.raises(ShapeError, match=r"Decode: names: .* column 'path', found columns 'x'"):
        Decode(names="path")({"x": [good]})


def test_images_and_masks_of_other_sizes_are_refused():
    with pytest.raises(ShapeError, match="Decode: expected bytes, found images"):
        Decode()(photos())
    with pytest.raises(ShapeError, match=r"mask 0: expected the image's \(75, 100\)"):
        Decode()({**labelled(), "x": [file(photo())]})
