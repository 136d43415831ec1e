"""Tests of the distance of a grid's points."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.errors import DataError
from nowcast.rain.mesh import mean_spacing


def test_oblong_cells_count_as_squares_of_their_area() -> None:
    assert mean_spacing(np.arange(5) * 1000.0, np.arange(4) * 1000.0, "s") == 1000
    assert mean_spacing(np.arange(5) * -1112.0, np.arange(4) * 882.0, "s") == pytest.approx(
        990.35, abs=0.01
    )


@pytest.mark.parametrize(
    ("y", "x", "words"),
    [
        (np.zeros(1), np.arange(4.0), "s: expected at least 2 cells along y, found 1"),
        (np.arange(4) * 3.0, np.arange(4.0), "at most 2 times as long as wide, found 3 m by 1 m"),
        (np.zeros(3), np.zeros(3), "found 0 m by 0 m"),
    ],
)
def test_what_has_no_length_is_refused(y: np.ndarray, x: np.ndarray, words: str) -> None:
    with pytest.raises(DataError, match=words):
        mean_spacing(y, x, "s")
