"""Pictures: boxes in images, and contact sheets."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import plot
from daskdl.errors import ShapeError

GREY = np.full((60, 80, 3), 100, np.uint8)


def test_edges_and_nothing_else():
    drawn = np.asarray(plot.boxes(GREY, [[10, 20, 50, 40]]))
    changed = (drawn != 100).any(2)
    rows, columns = np.nonzero(changed)
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (20, 40, 10, 50)
    assert not changed[21:40, 11:50].any()
    assert (GREY == 100).all()


def test_fractions_gray_images_and_floats():
    pixels = np.asarray(plot.boxes(GREY, [[8, 12, 40, 30]]))
    for image in (GREY[..., 0], GREY[..., :1], GREY / np.float32(255)):
        drawn = plot.boxes(image, [[0.1, 0.2, 0.5, 0.5]], fractions=True)
        np.testing.assert_array_equal(np.asarray(drawn), pixels)


def test_names_and_scores_are_written_in_the_colour_of_the_class(tmp_path):
    boxes = [[5, 30, 30, 50], [40, 30, 70, 50]]
    boxed = plot.boxes(GREY, boxes, [0, 1])
    captioned = plot.boxes(GREY, boxes, [0, 1], [0.5, 0.75], names=["qr"])
    assert boxed.getpixel((5, 30)) == (0xFF, 0x50, 0x05)
    assert boxed.getpixel((40, 30)) == (0x00, 0x75, 0xDC)
    changed = (np.asarray(boxed) != np.asarray(captioned)).any(2)
    assert changed[:30].any()
    assert not changed[34:].any()
    captioned.save(tmp_path / "x.png")


def test_no_boxes():
    np.testing.assert_array_equal(np.asarray(plot.boxes(GREY, [])), GREY)


def test_mistakes_are_sentences():
    with pytest.raises(ShapeError, match=r"expected an image .* found \(2, 60, 80, 3\); take one"):
        plot.boxes(np.stack([GREY, GREY]), [])
    with pytest.raises(ShapeError, match="labels: expected one for each of 1 boxes, found 2"):
        plot.boxes(GREY, [[0, 0, 1, 1]], [1, 2])


def colour(*rgb, height=40, width=40):
    return np.full((height, width, 3), rgb, np.uint8)


def test_places_and_captions(tmp_path):
    red, green, blue = colour(255, 0, 0), colour(0, 255, 0, width=80), colour(0, 0, 255)
    sheet = plot.contact_sheet([red, blue], [[green, blue], [red]], side=40)
    captioned = plot.contact_sheet([red, blue], [[green, blue], [red]], [[3, 9], [1]], side=40)
    middles = [(26, 26), (78, 26), (124, 26), (26, 72), (78, 72), (124, 72)]
    expected = [(255, 0, 0), (0, 255, 0), (0, 0, 255), (0, 0, 255), (255, 0, 0), (255, 255, 255)]
    assert [sheet.getpixel(place) for place in middles] == expected
    assert sheet.getpixel((78, 10)) == (255, 255, 255)  # a wide picture keeps its shape
    assert captioned.height == sheet.height + 2 * 16
    assert (np.asarray(captioned)[46:60, 58:100] < 100).any()
    captioned.save(tmp_path / "x.png")


def test_a_sheet_of_no_results():
    assert plot.contact_sheet([colour(1, 2, 3)], [[]]).width == 96 + 3 * 6
    assert plot.contact_sheet([], []).height > 0


def test_a_row_for_each_query():
    with pytest.raises(ShapeError, match="found: expected a row for each of 1 queries, found 2"):
        plot.contact_sheet([colour(1, 2, 3)], [[], []])
