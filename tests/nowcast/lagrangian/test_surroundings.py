"""Tests of shares in squares around pixels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nowcast.lagrangian.exceedance import MarginTable, exceedance, logit
from nowcast.lagrangian.ranks import ranks
from nowcast.lagrangian.surroundings import LEAST, Surroundings
from tests.nowcast.fields import storms


def test_shares_are_those_of_the_known_pixels_with_weights_that_fall_off() -> None:
    rain = storms((47, 70), 1)  # no whole number of cells
    rain[10:25, 30:44] = np.nan
    found = Surroundings.of(rain, (0.1, 1.0), spacing_km=2.0)
    assert found.side == 2
    for made, reach in ((found.near, 1), (found.wide, 3)):
        assert made.shape == (2, 24, 35)
        along_y, along_x = (_twice(n, reach) for n in (24, 35))
        for k, level in enumerate((0.1, 1.0)):
            known, reached = (
                along_y @ _by_cell(pixels) @ along_x
                for pixels in (np.isfinite(rain), rain >= level)
            )
            share = reached / np.maximum(known, 1)
            wanted = np.log((share + LEAST) / (1 - share + LEAST))
            np.testing.assert_allclose(made[k], wanted, rtol=1e-5, atol=1e-5)


def _twice(cells: int, reach: int) -> np.ndarray:
    """Return the matrix that adds up neighbours, and sums again."""
    apart = np.abs(np.subtract.outer(np.arange(cells), np.arange(cells)))
    once = (apart <= reach).astype(float)
    return once @ once


def _by_cell(pixels: np.ndarray) -> np.ndarray:
    """Count pixels in cells of 2 x 2."""
    padded = np.pad(pixels.astype(float), [(0, n % 2) for n in pixels.shape])
    return padded.reshape(len(padded) // 2, 2, -1, 2).sum((1, 3))


def test_where_nothing_is_known_it_is_as_if_dry() -> None:
    found = Surroundings.of(np.full((9, 9), np.nan, np.float32), (1.0,), spacing_km=1.0)
    np.testing.assert_allclose(found.wide, np.log(LEAST / (1 + LEAST)), rtol=1e-6)


def test_probabilities_count_what_surrounds_a_pixel() -> None:
    rain = storms((96, 80), 3)
    rank = ranks(rain)
    plain = MarginTable((1.0,), ((1.5, 1.0),), ((0.0, 0.0),), ((0.0, 0.0),), ((0.0, 0.0),))
    table = replace(plain, near=((0.5, 0.0),), wide=((0.25, 0.0),))
    without, made = (
        logit(exceedance(rain, rank, rain, (1.0,), 30, numbers, spacing_km=1.0)[0])
        for numbers in (plain, table)
    )
    near, wide = Surroundings.of(rain, (1.0,), spacing_km=1.0).at_pixels(rain.shape)
    inside = np.abs(without) < 8  # float32 knows little of the logits of 0 and 1
    np.testing.assert_allclose(
        (made - without)[inside], (0.5 * near + 0.25 * wide)[0][inside], atol=2e-3
    )
