"""Mosaics: maps merged, moved and compared."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nowcast.mosaic import Calibration, Difference, View, merge, motion_between, moved, offsets

NAN = np.nan


def view(rain, quality) -> View:
    return View(np.array([rain], np.float32), np.array([quality], np.float32))


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("quality", [2.5, 4.0, 0.0, NAN, NAN]),
        ("maximum", [4.0, 4.0, 0.0, NAN, NAN]),
        ("nearest", [1.0, 4.0, 0.0, NAN, NAN]),
    ],
)
def test_cells_that_one_radar_misses_come_from_the_other(how, expected):
    first = view([1.0, NAN, 0.0, NAN, 7.0], [0.5, 0.9, 0.9, 0.9, NAN])
    second = view([4.0, 4.0, NAN, NAN, NAN], [0.5, 0.1, NAN, 0.5, NAN])
    merged = merge([first, second], how)
    np.testing.assert_array_equal(merged.rain[0], np.float32(expected))
    np.testing.assert_array_equal(merged.quality[0], np.float32([0.5, 0.1, 0.9, 0, 0]))


@given(st.integers(0, 99), st.sampled_from(["quality", "maximum", "nearest"]))
def test_a_merge_lies_between_its_views_and_has_all_their_cells(seed, how):
    rng = np.random.default_rng(seed)
    views = []
    for _ in range(int(rng.integers(1, 4))):
        rain = rng.gamma(0.3, 5, (6, 7)).astype(np.float32)
        rain[rng.random((6, 7)) < 0.5] = NAN
        views.append(View(rain, rng.uniform(0.001, 1, (6, 7)).astype(np.float32)))
    merged = merge(views, how)
    least, most = (f.reduce([v.rain for v in views]) for f in (np.fmin, np.fmax))
    np.testing.assert_array_equal(np.isnan(merged.rain), np.isnan(most))
    known = np.isfinite(most)
    assert (merged.rain[known] >= least[known] * 0.999).all()
    assert (merged.rain[known] <= most[known] * 1.001).all()
    np.testing.assert_array_equal(merged.quality > 0, known)


def test_rain_is_moved_in_time_and_the_rim_is_missing():
    y, x = np.mgrid[:60, :60]

    def blob(seconds):
        return (20 * np.exp(-((x - 20 - seconds / 50) ** 2 + (y - 30) ** 2) / 40)).astype("f4")

    motion = motion_between(blob(0), blob(300), 300.0, 1000.0)
    for seconds in (150.0, -150.0):
        at = moved(View(blob(300), np.ones((60, 60), "f4")), motion, seconds)
        known = np.isfinite(at.rain)
        assert 0.9 < known.mean() < 1
        wet = known & (blob(300 + seconds) > 2)
        error = np.abs(at.rain - blob(300 + seconds))[wet].mean()
        assert error < 0.35 * np.abs(blob(300) - blob(300 + seconds))[wet].mean()


def test_calibrations_are_compared_where_both_see_rain_alike():
    rng = np.random.default_rng(5)
    truth = rng.gamma(1, 4, (80, 80)).astype(np.float32)
    quality = np.full((80, 80), 0.5, np.float32)
    other = quality.copy()
    other[:40] = 0.1  # far from the radar: its rain is not compared
    factor = np.where(other == 0.5, 10 ** (0.2 / 1.6), 100).astype(np.float32)
    calibration = Calibration(1.6)
    calibration.add({"a": View(truth, quality), "b": View(truth * factor, other)})
    (pair,) = calibration.differences()
    assert (pair.first, pair.second) == ("a", "b")
    assert pair.decibel == pytest.approx(2.0, abs=0.1)
    assert offsets([pair, Difference("b", "c", -1.0, pair.cells)])["b"] == pytest.approx(
        -1.0, abs=0.1
    )
