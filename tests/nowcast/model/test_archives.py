"""Stores to train on, whole or cut by their rain, and the probabilities fitted to them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import DataError
from nowcast.forecasters import Sprog
from nowcast.lagrangian.exceedance import SHIPPED, THRESHOLDS
from nowcast.model.archives import (
    Archive,
    common_step_and_spacing,
    split_archives,
    training_windows,
)
from nowcast.model.calibration import Sample, calibrate, fit, read_table, write_table
from nowcast.model.settings import TrainSettings
from nowcast.model.split import Split, split_by_rain
from nowcast.rain.store import write_zarr
from tests.nowcast.model.test_train import write_store
from tests.nowcast.stores import moving_rain, translation

SETTINGS = TrainSettings(n_in=2, lead_minutes=30, tile=16, tile_stride=16, shards=4, wet_fraction=0)
TEN = np.timedelta64(10, "m")


def stores(folder: Path, **made: xr.Dataset) -> list[Path]:
    for name, dataset in made.items():
        write_zarr(dataset.assign_attrs(title=name), folder / f"{name}.zarr")
    return [folder / f"{name}.zarr" for name in made]


def opened(paths: list[Path], spacing: float = 1000.0) -> list[Archive]:
    return [Archive.open(path, TEN, spacing) for path in paths]


def names(split: Split) -> list[list[str]]:
    return [
        [s.store.split(" [")[0] for s in part]
        for part in (split.train, split.validation, split.test)
    ]


@pytest.mark.slow
def test_the_longest_step_and_the_first_grid_are_common(tmp_path):
    fast = moving_rain(5 * np.arange(24))
    paths = stores(tmp_path, fast=fast, slow=moving_rain(), fine=moving_rain(spacing=500.0))
    assert common_step_and_spacing(paths, None, None) == (TEN, 1000.0)
    assert common_step_and_spacing(paths[::-1], *SETTINGS.step_and_spacing) == (TEN, 500.0)
    chosen = SETTINGS.model_copy(update={"step_minutes": 20.0, "spacing_km": 2.0})
    assert common_step_and_spacing(paths, *chosen.step_and_spacing) == (
        np.timedelta64(20, "m"),
        2000.0,
    )


def test_a_store_that_fits_is_read_from_its_path_and_others_are_resampled(tmp_path):
    coarse, fine = opened(stores(tmp_path, coarse=moving_rain(), fine=moving_rain(spacing=500.0)))
    assert coarse.data == str(tmp_path / "coarse.zarr")
    assert isinstance(fine.data, xr.DataArray)
    assert fine.rain.sizes == {"time": 24, "y": 16, "x": 16}


@pytest.mark.slow
def test_named_stores_are_whole_and_others_are_cut(tmp_path):
    made = {name: moving_rain() for name in "abcd"}
    a, b, c, d = opened(stores(tmp_path, **made))
    assert names(split_archives([a, b], [c], [d], SETTINGS, 2)) == [["a", "b"], ["c"], ["d"]]
    assert names(split_archives([a], [], [], SETTINGS, 2)) == [["a"], ["a"], ["a"]]
    some = split_archives([a], [], [d], SETTINGS, 2)
    assert names(some) == [["a", "a"], ["a"], ["d"]]
    assert not {(s.first, s.last) for s in some.train} & {
        (s.first, s.last) for s in some.validation
    }


@pytest.mark.slow
def test_a_store_too_short_to_be_cut_is_trained_on(tmp_path):
    long, short = opened(stores(tmp_path, long=moving_rain(), short=moving_rain(range(0, 120, 10))))
    assert names(split_archives([short, long], [], [], SETTINGS, 2)) == [
        ["short", "long"], ["long"], ["long"],
    ]  # fmt: skip
    with pytest.raises(DataError, match=r"short \[\w+\]: expected at least 3 x 5 frames"):
        split_archives([short], [], [], SETTINGS, 2)


@pytest.mark.slow
def test_many_stores_are_split_whole(tmp_path):
    made = opened(stores(tmp_path, **{name: moving_rain() for name in "abcdefgh"}))
    split = split_archives(made, [], [], SETTINGS, 2)
    assert names(split) == [list("abcde"), ["f"], ["g", "h"]]


@pytest.mark.slow
def test_every_shard_has_windows_of_every_store(tmp_path):
    made = opened(stores(tmp_path, coarse=moving_rain(), fine=moving_rain(spacing=500.0)))
    split = split_archives(made, [], [], SETTINGS, 2)
    samples = training_windows(made, split.train, 3, SETTINGS)
    assert samples.partitions == SETTINGS.shards
    alone = [training_windows([one], split.train, 3, SETTINGS) for one in made]
    assert len(samples) == sum(map(len, alone))
    assert samples.lengths == tuple(map(sum, zip(*(one.lengths for one in alone), strict=True)))
    assert samples.head(1)["x"].shape == (1, 2, 16, 16, 1)


@pytest.mark.slow
def test_a_store_without_a_window_is_left_out_and_named(tmp_path):
    dry = moving_rain()
    dry["rain_rate"] = dry["rain_rate"] * 0
    made = opened(stores(tmp_path, wet=moving_rain(), dry=dry))
    settings = SETTINGS.model_copy(update={"wet_fraction": 0.05, "keep_dry": 0.0})
    split = split_archives(made, [], [], settings, 2)
    messages: list[str] = []
    assert len(training_windows(made, split.train, 3, settings, messages.append))
    assert len(messages) == 1
    assert messages[0].startswith("left out: ")
    assert "dry.zarr" in messages[0]
    with pytest.raises(DataError, match="at least one window"):
        training_windows(made[1:], split.train, 3, settings)


def samples(slope: float, count: int, seed: int = 0) -> list[Sample]:
    """Pixels whose chance of rain is logistic(slope * sure * odds); other predictors are 0."""
    rng = np.random.default_rng(seed)
    odds = rng.normal(0, 2, count)
    sure, wet = rng.uniform(0.5, 2, count), np.zeros(len(THRESHOLDS))
    chance = 1 / (1 + np.exp(-slope * sure * odds))
    rain = np.where(rng.random(count) < chance, 50, 0).astype(np.float32)
    around = np.zeros((len(THRESHOLDS), count), np.float32)
    return [Sample("a", 0.0, odds, wet, sure, np.zeros(count), around, around, rain)]


def test_the_slope_of_the_data_is_fitted():
    table = fit(samples(1.3, 20000), SHIPPED)
    assert all(abs(first - 1.3) < 0.1 for first, _ in table.slope)


def test_data_without_information_leave_the_table():
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
    shipped = Sprog().forecast(frames[8:11], 3, spacing_km=1.0, step_minutes=10.0).exceedance(1.0)
    brier = [np.mean((p - truth)[known] ** 2) for p in (chance, shipped)]
    assert brier[0] < 0.8 * brier[1]  # rain that only moves is more certain than real rain
    write_table(table, tmp_path / "own.json", {"starts": used})
    assert read_table(tmp_path / "own.json") == table


@pytest.mark.slow
def test_an_older_file_is_read_without_surroundings(tmp_path):
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


def test_other_files_are_refused(tmp_path):
    (tmp_path / "a.json").write_text("{}")
    for name in ("a.json", "none.json"):
        with pytest.raises(DataError, match="expected a file that nowcast calibrate wrote"):
            read_table(tmp_path / name)


def test_the_spacing_of_oblong_cells_is_a_geometric_mean(tmp_path):
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


def test_a_split_survives_a_round_trip_as_a_dict():
    split = split_by_rain("s", times(40), np.ones(40), FRACTIONS, 2)
    assert Split.from_dict(split.to_dict()) == split
    assert split.of_store("test", "s") == list(split.test)
    assert split.of_store("test", "other") == []
