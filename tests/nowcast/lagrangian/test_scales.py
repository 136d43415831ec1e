"""Shares around pixels, bands of scales, and the models of their memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nowcast.lagrangian.blocks import LEAST, Surroundings, block_means, enlarge, resample
from nowcast.lagrangian.exceedance import MarginTable, exceedance, logit
from nowcast.lagrangian.pyramid import (
    BandModel,
    Pyramid,
    compose,
    decompose,
    fit,
    lagged,
    levels_of,
    root_of,
)
from nowcast.lagrangian.ranks import ranks
from tests.nowcast.stores import storms


def test_shares_count_known_pixels_with_weights_that_fall_off():
    rain = storms((47, 70), 1)  # no whole number of cells
    rain[10:25, 30:44] = np.nan
    surroundings = Surroundings.of(rain, (0.1, 1.0), spacing_km=2.0)
    assert surroundings.side == 2
    for made, reach in ((surroundings.near, 1), (surroundings.wide, 3)):
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
    """Return the matrix that adds up neighbours twice."""
    apart = np.abs(np.subtract.outer(np.arange(cells), np.arange(cells)))
    once = (apart <= reach).astype(float)
    return once @ once


def _by_cell(pixels: np.ndarray) -> np.ndarray:
    """Count pixels in cells of 2 x 2."""
    padded = np.pad(pixels.astype(float), [(0, n % 2) for n in pixels.shape])
    return padded.reshape(len(padded) // 2, 2, -1, 2).sum((1, 3))


def test_unknown_surroundings_count_as_dry():
    surroundings = Surroundings.of(np.full((9, 9), np.nan, np.float32), (1.0,), spacing_km=1.0)
    np.testing.assert_allclose(surroundings.wide, np.log(LEAST / (1 + LEAST)), rtol=1e-6)


def test_probabilities_depend_on_the_surroundings():
    rain = storms((96, 80), 3)
    rank = ranks(rain)
    alone = MarginTable((1.0,), ((1.5, 1.0),), ((0.0, 0.0),), ((0.0, 0.0),), ((0.0, 0.0),))
    table = replace(alone, near=((0.5, 0.0),), wide=((0.25, 0.0),))
    without, made = (
        logit(exceedance(rain, rank, rain, (1.0,), 30, numbers, spacing_km=1.0)[0])
        for numbers in (alone, table)
    )
    near, wide = Surroundings.of(rain, (1.0,), spacing_km=1.0).at_pixels(rain.shape)
    inside = np.abs(without) < 8  # float32 is inexact for logits near 0 and 1
    np.testing.assert_allclose(
        (made - without)[inside], (0.5 * near + 0.25 * wide)[0][inside], atol=2e-3
    )


def test_means_of_whole_and_partial_blocks():
    field = np.arange(15, dtype=np.float32).reshape(3, 5)
    made = block_means(field, 2)
    assert made.shape == (2, 3)
    assert made[0, 0] == field[:2, :2].mean()
    assert made[1, 2] == field[2, 4] / 4
    assert block_means(field, 1) is field


def test_blocks_are_interpolated_and_constant_beyond_the_ends():
    blocks = np.array([[[1.0, 3.0, 4.0]]], np.float32)
    made = enlarge(blocks, (2, 6), 2)
    at = (np.arange(6) + 0.5) / 2 - 0.5
    np.testing.assert_allclose(made, np.broadcast_to(np.interp(at, range(3), [1, 3, 4]), (1, 2, 6)))


def test_a_plane_stays_a_plane_on_another_grid():
    centres = (np.arange(8) + 0.5) * 3.0
    plane = np.broadcast_to(centres, (1, 8, 8)).astype(np.float32)
    made = resample(plane, 3.0, (12, 12), 2.0)
    inner = slice(1, -1)
    np.testing.assert_allclose(made[0, 5, inner], ((np.arange(12) + 0.5) * 2.0)[inner], rtol=1e-5)


@pytest.mark.parametrize("shape", [(64, 64), (97, 45), (7, 130)])
def test_bands_add_up_to_the_field(shape):
    field = storms(shape, 3)
    field[: shape[0] // 3, : shape[1] // 4] = np.nan
    parts = decompose(field)
    assert len(parts.bands) == levels_of(shape)
    again = compose(parts.bands, parts.weights)
    known = np.isfinite(field)
    np.testing.assert_allclose(again[known], field[known], atol=1e-4)


def test_missing_pixels_do_not_change_bands():
    field = np.full((64, 80), 3.0, np.float32)
    field[20:40, 30:60] = np.nan
    parts = decompose(field)
    for band in parts.bands[:-1]:
        np.testing.assert_allclose(band, 0, atol=1e-5)
    np.testing.assert_allclose(parts.bands[-1], 3, atol=1e-5)


@pytest.mark.slow
def test_a_wave_is_in_the_band_of_its_length():
    x = np.arange(256)
    energy = []
    for length in (4, 16, 64):
        wave = np.broadcast_to(np.cos(2 * np.pi * x / length), (256, 256)).astype(np.float32)
        energy.append([float(np.abs(b).mean()) for b in decompose(wave).bands])
    assert [int(np.argmax(e)) for e in energy] == [0, 1, 3]


TIMES = np.arange(1.0, 4)


def simulated(root: float, steps: int, size: int = 4000) -> np.ndarray:
    """Run the recursion x = 2 r x' - r^2 x'' + noise, (step, size), until it is stationary."""
    rng = np.random.default_rng(0)
    made = list(np.zeros((2, size)))
    for _ in range(400 + steps):
        made.append(2 * root * made[-1] - root**2 * made[-2] + rng.standard_normal(size))
    return np.stack(made[-steps:])


@pytest.mark.parametrize("root", [0.2, 0.7, 0.95])
def test_weights_follow_the_recursion(root):
    last, before = 1.3, -0.4
    weights = BandModel(0.0, root).ahead(np.arange(1.0, 7))
    path = [before, last]
    for _ in range(6):
        path.append(2 * root * path[-1] - root**2 * path[-2])
    np.testing.assert_allclose(weights @ [last, before], path[2:])


@pytest.mark.parametrize("root", [0.2, 0.7, 0.9])
def test_correlations_and_forgotten_variance_follow_the_process(root):
    x = simulated(root, 8)
    correlation = np.corrcoef(x[-3:])
    assert correlation[2, 1] == pytest.approx(lagged(root, 1), abs=0.03)
    assert correlation[2, 0] == pytest.approx(lagged(root, 2), abs=0.05)
    ahead = BandModel(0.0, root).ahead(TIMES) @ x[[4, 3]]
    error = ((x[5:] - ahead) ** 2).mean(1) / (x**2).mean()
    np.testing.assert_allclose(BandModel(0.0, root).forgotten(TIMES), error, rtol=0.1)


@pytest.mark.parametrize("time", [0.5, 1, 2, 2.4])
@pytest.mark.parametrize("root", [0.2, 0.7, 0.95])
def test_a_correlation_at_any_time_gives_the_root(root, time):
    assert root_of(lagged(root, time), time) == pytest.approx(root)


def test_forgotten_variance_is_linear_between_whole_times():
    forgotten = BandModel(0.0, 0.8).forgotten(np.array([1, 1.5, 2, 0.25]))
    assert forgotten[1] == pytest.approx((forgotten[0] + forgotten[2]) / 2)
    assert forgotten[3] == pytest.approx(forgotten[0] / 4)


def test_a_band_that_grows_goes_on_growing_and_then_returns():
    at = BandModel(0.0, 0.9).ahead(np.arange(1.0, 61)) @ [1.0, 0.8]
    assert at[0] > 1
    assert at.argmax() < 15
    assert 0 < at[-1] < 0.2


def test_fit_finds_the_root_and_the_mean():
    x = simulated(0.8, 3, 120 * 120).reshape(3, 120, 120).astype(np.float32) + 5
    ones = np.ones((120, 120), np.float32)
    (model,) = fit([Pyramid([band], [ones]) for band in x], [2, 1, 0])
    assert model.root == pytest.approx(0.8, abs=0.02)
    assert model.mean == pytest.approx(5, abs=0.1)


def test_a_flat_band_is_forgotten_at_once():
    flat = Pyramid([np.full((9, 9), 2, np.float32)], [np.ones((9, 9), np.float32)])
    (model,) = fit([flat, flat, flat], [4, 2, 0])
    assert model.root == 0
    np.testing.assert_array_equal(model.ahead(TIMES), 0)
    np.testing.assert_array_equal(model.forgotten(TIMES), 1)
