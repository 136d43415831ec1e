"""A contact sheet has the queries on the left, and what was found beside them."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import plot
from daskdl.errors import ShapeError


def colour(*rgb, height=40, width=40):
    return np.full((height, width, 3), rgb, np.uint8)


def test_places_and_captions(tmp_path):
    red, green, blue = colour(255, 0, 0), colour(0, 255, 0, width=80), colour(0, 0, 255)
    plain = plot.contact_sheet([red, blue], [[green, blue], [red]], side=40)
    told = plot.contact_sheet([red, blue], [[green, blue], [red]], [[3, 9], [1]], side=40)
    middles = [(26, 26), (78, 26), (124, 26), (26, 72), (78, 72), (124, 72)]
    expected = [(255, 0, 0), (0, 255, 0), (0, 0, 255), (0, 0, 255), (255, 0, 0), (255, 255, 255)]
    assert [plain.getpixel(place) for place in middles] == expected
    assert plain.getpixel((78, 10)) == (255, 255, 255)  # a wide picture keeps its shape
    assert told.height == plain.height + 2 * 16
    assert (np.asarray(told)[46:60, 58:100] < 100).any()
    told.save(tmp_path / "x.png")


def test_nothing_found():
    assert plot.contact_sheet([colour(1, 2, 3)], [[]]).width == 96 + 3 * 6
    assert plot.contact_sheet([], []).height > 0


def test_a_row_for_each_query():
    with pytest.raises(ShapeError, match="found: expected a row for each of 1 queries, found 2"):
        plot.contact_sheet([colour(1, 2, 3)], [[], []])
