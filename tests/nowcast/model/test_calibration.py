"""Calibration: what is fitted is right on average, few data change little, files are checked."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import DataError
from nowcast.forecasters import Sprog
from nowcast.lagrangian.exceedance import SHIPPED, THRESHOLDS
from nowcast.model.archives import Archive
from nowcast.model.calibration import Sample, calibrate, fit, read_table, write_table
from nowcast.model.split import Split, split_by_rain
from tests.nowcast.fields import translation
from tests.nowcast.model.test_train import write_store


def samples(slope: float, count: int, seed: int = 0) -> list[Sample]:
    """Pixels whose chance of any rain is logistic(slope * sure * margin), all else left out."""
    rng = np.random.default_rng(seed)
    odds = rng.normal(0, 2, count)
    sure, wet = rng.uniform(0.5, 2, count), np.zeros(len(THRESHOLDS))
    chance = 1 / (1 + np.exp(-slope * sure * odds))
    rain = np.where(rng.random(count) < chance, 50, 0).astype(np.float32)
    around = np.zeros((len(THRESHOLDS), count), np.float32)
    return [Sample("a", 0.0, odds, wet, sure, np.zeros(count), around, around, rain)]


def test_the_slope_that_made_the_data_is_found():
    table = fit(samples(1.3, 20000), SHIPPED)
    assert all(abs(first - 1.3) < 0.1 for first, _ in table.slope)


def test_without_data_that_tell_the_table_stays():
    few = samples(1.3, 20)
    table = fit([replace(few[0], odds=np.zeros(20))], SHIPPED)
    np.testing.assert_allclose(table.slope, SHIPPED.slope, atol=2e-3)


@pytest.mark.slow
def test_a_store_is_fitted_and_its_probabilities_are_right_on_average(tmp_path):
    frames = translation(40, 1, 2, size=96)
    store = write_store(tmp_path / "rain.zarr", frames)
    table, used = calibrate([store], starts=6, lead_minutes=30)
    assert used == 6
    forecast = Sprog(table=table).forecast(frames[8:11], 3, spacing_km=1.0, step_minutes=10.0)
    chance, truth = forecast.exceedance(1.0), frames[11:14] >= 1
    known = np.isfinite(chance)
    assert chance[known].mean() == pytest.approx(truth[known].mean(), abs=0.04)
    plain = Sprog().forecast(frames[8:11], 3, spacing_km=1.0, step_minutes=10.0).exceedance(1.0)
    brier = [np.mean((p - truth)[known] ** 2) for p in (chance, plain)]
    assert brier[0] < 0.8 * brier[1]  # rain that only moves is surer than real rain
    write_table(table, tmp_path / "own.json", {"starts": used})
    assert read_table(tmp_path / "own.json") == table


@pytest.mark.slow
def test_a_file_from_before_surroundings_counted_goes_on_without_them(tmp_path):
    write_table(SHIPPED, tmp_path / "own.json", {})
    numbers = json.loads((tmp_path / "own.json").read_text())
    del numbers["rank_margin"]["near"], numbers["rank_margin"]["wide"]
    (tmp_path / "own.json").write_text(json.dumps(numbers))
    table = read_table(tmp_path / "own.json")
    assert table == replace(SHIPPED, near=(), wide=())
    rain = translation(3, 1, 2, size=96)
    zeros = ((0.0, 0.0),) * len(THRESHOLDS)
    made, expected = (
        Sprog(table=t).forecast(rain, 2, spacing_km=1.0, step_minutes=10.0).exceedance(1.0)
        for t in (table, replace(SHIPPED, near=zeros, wide=zeros))
    )
    np.testing.assert_array_equal(made, expected)


def test_what_is_no_such_file_is_refused(tmp_path):
    (tmp_path / "a.json").write_text("{}")
    for name in ("a.json", "none.json"):
        with pytest.raises(DataError, match="expected a file that nowcast calibrate wrote"):
            read_table(tmp_path / name)


def test_oblong_cells_are_as_far_apart_as_forecasts_have_them(tmp_path):
    archive = Archive.open(write_store(tmp_path / "rain.zarr", translation(2, 1, 2)), None, None)
    oblong = archive.rain.assign_coords(y=1.44 * archive.rain["y"])
    assert replace(archive, rain=oblong).spacing_km == pytest.approx(1.2)


def test_a_store_without_rain_is_refused(tmp_path):
    store = write_store(tmp_path / "rain.zarr", np.zeros((12, 64, 64), np.float32))
    with pytest.raises(DataError, match="expected frames with rain in 2% of the grid"):
        calibrate([store])


FRACTIONS = (0.6, 0.15)


def times(n: int, minutes: int = 5) -> np.ndarray:
    return np.datetime64("2020-02-07T13:00") + minutes * np.arange(n) * np.timedelta64(1, "m")


def inside(time: np.ndarray, split: Split) -> list[np.ndarray]:
    """Whether each time is in each part."""
    return [
        np.any([(time >= s.first) & (time <= s.last) for s in part], axis=0)
        for part in (split.train, split.validation, split.test)
    ]


@given(st.integers(12, 300), st.integers(0, 99), st.floats(0.3, 0.6), st.floats(0.1, 0.2))
def test_parts_follow_each_other_share_no_frame_and_hold_a_window(n, seed, train, validation):
    time = times(n)
    wet = np.random.default_rng(seed).gamma(0.3, 0.1, n)
    parts = inside(time, split_by_rain("s", time, wet, (train, validation), 4))
    assert (np.sum(parts, axis=0) == 1).all()
    assert min(part.sum() for part in parts) >= 4
    firsts = [int(np.argmax(part)) for part in parts]
    assert firsts == sorted(firsts)


def test_parts_have_their_shares_of_the_rain_and_a_dry_evening_is_no_test():
    time = times(288)
    wet = np.where(np.arange(288) < 144, 0.3, 0.0)  # rain until noon, then none
    _, validation, test = inside(time, split_by_rain("s", time, wet, FRACTIONS, 17))
    assert wet[test].sum() / wet.sum() == pytest.approx(0.25, abs=0.02)
    assert wet[validation].sum() / wet.sum() == pytest.approx(0.15, abs=0.02)


def test_a_cut_near_the_beginning_of_an_event_is_moved_there():
    time = times(200, 60)
    wet = np.zeros(200)
    for first in (0, 50, 100, 150):
        wet[first : first + 20] = 0.2
    split = split_by_rain("s", time, wet, (0.55, 0.2), 5)
    # Events of a quarter of the rain each: 0.55 is moved to 0.5 and 0.75 is right as it is.
    assert split.validation[0].first == time[100]
    assert split.test[0].first == time[150]


@pytest.mark.parametrize(
    ("wet", "least", "lengths"),
    [(np.full(84, 0.1), 17, [50, 17, 17]), (np.zeros(100), 5, [60, 15, 25])],
    ids=["seven hours", "without rain"],
)
def test_few_hours_and_a_store_without_rain_are_cut_by_their_frames(wet, least, lengths):
    time = times(len(wet))
    parts = inside(time, split_by_rain("s", time, wet, FRACTIONS, least))
    assert [int(part.sum()) for part in parts] == lengths


def test_too_few_frames_are_refused_with_the_options_that_help():
    with pytest.raises(DataError, match=r"s: expected at least 3 x 17 frames.* found 40.*--lead.*"):
        split_by_rain("s", times(40), np.ones(40), FRACTIONS, 17)


def test_there_and_back_as_plain_data():
    split = split_by_rain("s", times(40), np.ones(40), FRACTIONS, 2)
    assert Split.from_dict(split.to_dict()) == split
    assert split.of_store("test", "s") == list(split.test)
    assert split.of_store("test", "other") == []
