"""A forecast from a rain store: its frames, its description, and refused arguments."""

from __future__ import annotations

from unittest.mock import ANY

import numpy as np
import pytest
import xarray as xr

from daskdl.errors import DataError, SettingsError
from nowcast.forecasters.dataset import forecast_dataset
from nowcast.forecasters.forecast import Forecast
from nowcast.forecasters.predict import find_time, predict, run_before
from nowcast.forecasters.trained import Trained
from nowcast.rain.grid import Grid
from nowcast.rain.store import open_rain, write_dataset
from tests.nowcast.stores import FRAMES, N_IN, N_OUT, START, STEP, moving_rain, small_model


@pytest.fixture(scope="module")
def rain():
    return moving_rain()


@pytest.fixture(scope="module")
def model():
    return Trained(small_model())


@pytest.mark.parametrize(
    ("at", "index"),
    [
        ("latest", FRAMES - 1),
        ("2020-06-01T00:00", 0),
        ("2020-06-01T01:10Z", 7),
        ("2020-06-01 01:10:00", 7),
        ("2020-06-01T03:10+02:00", 7),
    ],
)
def test_times_are_found(rain, at, index):
    assert find_time(rain, at) == index


@pytest.mark.parametrize("at", ["soon", "", "now", "NaT", "2020-06-31"])
def test_a_text_that_is_no_time_is_a_wrong_setting(rain, at):
    with pytest.raises(SettingsError, match=r"--at: expected a time .* or 'latest', found '") as e:
        find_time(rain, at)
    assert repr(at) in str(e.value)


@pytest.mark.parametrize(
    ("at", "nearest"),
    [
        ("2020-06-01T01:06", "01:10"),
        ("2020-06-01T01:10:01", "01:10"),
        ("1850-01-01", "00:00"),
        ("9999-01-01", "03:50"),
    ],
)
def test_a_time_without_frame_names_the_nearest(rain, at, nearest):
    with pytest.raises(
        DataError,
        match=rf"expected a frame at {at}.* nearest is at 2020-06-01T{nearest}, and they run from "
        "2020-06-01T00:00 to 2020-06-01T03:50",
    ):
        find_time(rain, at)


class Reads:
    """A forecaster that keeps its arguments, of frames ten minutes apart or of the last ones."""

    n_in, least = 3, 2

    def __init__(self, baseline: float | None = 10.0) -> None:
        self.baseline = baseline

    def forecast(self, rain, leads, **settings):
        self.rain, self.settings = rain, settings
        return Forecast(np.zeros((leads, *rain.shape[1:]), np.float32))


def test_the_last_frames_up_to_a_time(rain):
    reads = Reads(None)
    predict(reads, rain.astype(np.float64), "2020-06-01T01:10")
    assert reads.rain.dtype == np.float32
    np.testing.assert_array_equal(reads.rain, rain["rain_rate"].values[5:8])
    assert "ages" not in reads.settings


@pytest.mark.parametrize(
    ("minutes", "ages", "step"),
    [
        (range(0, 60, 2), [20, 10, 0], 2),
        (np.arange(0, 60, 2.5), [20, 10, 0], 2.5),
        (range(0, 60, 5), [20, 10, 0], 5),
        (range(0, 60, 15), [30, 15, 0], 15),
        ([0, 6, 10, 16, 21, 26, 30, 36], [20, 10, 0], 5),  # irregular: as they are
        ([0, 10, 20, 30, 55], [35, 25, 0], 10),
        ([0, 50, 60, 70], [20, 10, 0], 10),  # a longer gap is not bridged
    ],
)
def test_frames_ten_minutes_apart_with_their_ages(minutes, ages, step):
    reads = Reads()
    messages = []
    made = predict(reads, moving_rain(list(minutes)), say=messages.append)
    assert reads.settings["ages"] == ages
    assert reads.settings["step_minutes"] == step
    assert made["lead_time"].values[0] == np.timedelta64(round(60 * step), "s")
    bridged = ages[-2] > 1.5 * step and step == 10
    assert messages == ([] if not bridged else [ANY])


def test_ages_come_from_scan_times_not_from_rounded_times():
    rain = moving_rain([0, 5, 10, 15, 20])
    scanned = rain["time"].values + np.array([-60, 80, 30, -100, 90]) * np.timedelta64(1, "s")
    reads = Reads()
    predict(reads, rain.assign(scan_time=("time", scanned)))
    np.testing.assert_allclose(reads.settings["ages"], [21, 9.5, -1.5])


def test_frames_of_the_future_are_left_out_and_named():
    rain = moving_rain([0, 10, 20])
    time = rain["time"].values.copy()
    time[-1] = np.datetime64("2079-01-01")
    messages = []
    made = predict(Reads(), rain.assign_coords(time=time), say=messages.append)
    assert str(made["forecast_reference_time"].values)[:16] == "2020-06-01T00:10"
    assert "frames from 2079-01-01T00:00 on are left out" in messages[0]


def test_a_gap_that_is_too_long_is_refused():
    with pytest.raises(
        DataError,
        match="expected 2 frames up to 2020-06-01T01:30 with at most 30 min between them, found a "
        "gap of 70 min before it",
    ):
        predict(Reads(), moving_rain([0, 10, 20, 90]))


def test_frames_across_a_gap_are_refused_and_frames_after_it_are_not():
    gap = moving_rain([0, 10, 20, 40, 50, 60, 70])
    for index, before in ((1, "none"), (4, "a gap from 2020-06-01T00:20 on")):
        with pytest.raises(DataError, match=rf"3 frames every 10 min .* found 2 and {before} bef"):
            run_before(gap, index, 3, 3)
    assert [run_before(gap, 5, least, 4) for least in (2, 3)] == [3, 3]


def test_the_forecast_is_the_models(rain, model):
    made = predict(model, rain, "2020-06-01T01:10")
    expected = model.model(rain["rain_rate"].values[8 - N_IN : 8])
    np.testing.assert_array_equal(made["rain_rate"], expected)
    assert np.isnan(made["rain_rate"].values[:, :2, :2]).all()
    assert not np.array_equal(expected, predict(model, rain)["rain_rate"], equal_nan=True)


def test_a_shorter_lead_is_the_beginning_of_the_longest(rain, model):
    short, long = predict(model, rain, lead_minutes=20), predict(model, rain)
    assert (short.sizes["lead_time"], long.sizes["lead_time"]) == (2, N_OUT)
    xr.testing.assert_equal(short, long.isel(lead_time=slice(2)))


def test_leads_beyond_those_of_the_model_are_refused(rain, model):
    with pytest.raises(DataError, match="trained for 30 min ahead, found 40 min"):
        predict(model, rain, lead_minutes=40)
    with pytest.raises(SettingsError, match="a multiple of the frames' 10 min, found 25 min"):
        predict(model, rain, lead_minutes=25)


def test_a_model_of_a_longer_step_takes_one_frame_in_two_and_says_so(model):
    messages: list[str] = []
    fast = moving_rain(5 * np.arange(FRAMES))
    forecast = predict(model, fast, "2020-06-01T01:05", say=messages.append)
    assert "trained on frames every 10 min; of these, every 5 min, one in 2 is used" in messages[0]
    slow = fast.isel(time=slice(1, None, 2))
    expected = predict(model, slow, "2020-06-01T01:05")
    np.testing.assert_array_equal(forecast["rain_rate"], expected["rain_rate"])
    np.testing.assert_array_equal(forecast["time"], expected["time"])


def test_coordinates_and_attributes_follow_cf(rain):
    frames = np.zeros((N_OUT, 32, 32), np.float32)
    made = forecast_dataset(rain, 7, frames, "zeros")
    assert made["rain_rate"].dims == ("lead_time", "y", "x")
    assert made["forecast_reference_time"] == START + 7 * STEP
    assert made["lead_time"].values.tolist() == [600 * 10**9 * k for k in (1, 2, 3)]
    np.testing.assert_array_equal(made["time"], START + np.array([8, 9, 10]) * STEP)
    assert made["time"].dims == ("lead_time",)
    names = {
        "rain_rate": "rainfall_rate",
        "lead_time": "forecast_period",
        "forecast_reference_time": "forecast_reference_time",
        "time": "time",
        "x": "projection_x_coordinate",
        "y": "projection_y_coordinate",
        "latitude": "latitude",
        "longitude": "longitude",
    }
    assert {name: made[name].attrs["standard_name"] for name in names} == names
    assert all(made[name].attrs["long_name"] for name in names)
    assert made["rain_rate"].attrs["units"] == "mm h-1"
    assert made["rain_rate"].attrs["grid_mapping"] == "crs"
    assert Grid.from_dataset(made) == Grid.from_dataset(rain)
    assert made.attrs["Conventions"] == "CF-1.11"
    assert made.attrs["title"] == "Rain nowcast from 2020-06-01T01:10 UTC"
    assert made.attrs["source"] == "zeros, from weather radar, test"
    first, *older = made.attrs["history"].splitlines()
    assert first.endswith(": predict")
    assert older == rain.attrs["history"].splitlines()


def test_simulated_rain_gives_simulated_forecasts(model):
    assert "simulated" not in predict(model, moving_rain()).attrs
    for attrs in ({"simulated": 1}, {"source": "weather radar, station Simulated radar"}):
        assert predict(model, moving_rain(**attrs)).attrs["simulated"] == 1


@pytest.mark.slow
def test_a_store_on_disk_is_read_in_part_and_its_forecast_can_be_written(rain, model, tmp_path):
    write_dataset(rain, tmp_path / "rain.zarr")
    expected = predict(model, rain, "2020-06-01T01:10")
    # Only the frames of the forecast are read: the others are damaged.
    for chunk in (tmp_path / "rain.zarr" / "rain_rate" / "c").iterdir():
        if chunk.name not in {"6", "7"}:
            (chunk / "0" / "0").write_bytes(b"damaged")
    with open_rain(tmp_path / "rain.zarr") as store:
        made = predict(model, store, "2020-06-01T01:10")
        for name in ("f.zarr", "f.nc"):
            write_dataset(made, tmp_path / name)
    np.testing.assert_array_equal(made["rain_rate"], expected["rain_rate"])
