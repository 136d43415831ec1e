"""Sums adjusted to gauges: scores at gauges left out, files of gauges, and the command."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
import xarray as xr

import nowcast
from daskdl.console import run
from daskdl.errors import DataError, SettingsError
from nowcast.cli import app
from nowcast.rain.grid import Grid
from nowcast.rain.store import write_dataset
from nowcast.sums.adjust import METHODS, adjusted, left_out, pairs_of
from nowcast.sums.gauges import Gauges
from tests.nowcast.stores import START, rain_of

GRID = Grid.around(50.0, 5.0, size=(40, 40), spacing=5000.0)
HOURS = 4


@pytest.fixture(scope="module")
def rain():
    """Hourly rain, and the sums of a radar that sees 0.6 of it at the site, 0.3 at 100 km."""
    rng = np.random.default_rng(1)
    hourly = rng.gamma(2.0, 1.5, HOURS).astype(np.float32)[:, None, None]
    truth = hourly * np.exp(0.3 * np.sin(GRID.x / 20e3)[None, None, :]).astype(np.float32)
    truth = np.broadcast_to(truth, (HOURS, 40, 40))
    range_km = np.hypot(GRID.x[None], GRID.y[:, None]) / 1000
    frames = np.repeat(truth * 0.6 * 0.5 ** (range_km / 100), 6, axis=0)
    dataset = rain_of(frames, 10 * np.arange(6 * HOURS), GRID)
    return truth, nowcast.accumulate(dataset, "1h", observed=0.8)


@pytest.fixture(scope="module")
def gauges(rain):
    truth, sums = rain
    rng = np.random.default_rng(2)
    row, column = rng.integers(0, 40, (2, 25))
    latitude, longitude = (part[row, column] for part in GRID.latitude_longitude())
    times = sums["time"].values.astype("datetime64[s]")
    hour = ((times - START.astype("datetime64[s]")) / np.timedelta64(1, "h")).astype(int) - 1
    amount = truth[hour][:, row, column] * rng.lognormal(0, 0.1, (len(hour), 25))
    amount[0, 3] = np.nan
    return Gauges([f"s{k}" for k in range(25)], latitude, longitude, times, amount)


def write_csv(gauges, path):
    lines = ["station,latitude,longitude,time,mm"]
    for time, amounts in zip(gauges.time, gauges.amount, strict=True):
        for k, mm in enumerate(amounts):
            value = "" if np.isnan(mm) else f"{mm:.4f}"
            place = f"{gauges.latitude[k]:.6f},{gauges.longitude[k]:.6f}"
            lines.append(f"{gauges.names[k]},{place},{time}Z,{value}")
    path.write_text("\n".join(lines))
    return path


def write_netcdf(gauges, path):
    named = {"standard_name": "lwe_thickness_of_precipitation_amount", "units": "mm"}
    coordinates = {
        "station": gauges.names,
        "time": gauges.time.astype("datetime64[ns]"),
        "lat": ("station", gauges.latitude, {"standard_name": "latitude"}),
        "lon": ("station", gauges.longitude, {"standard_name": "longitude"}),
    }
    amounts = (("station", "time"), gauges.amount.T, named)
    xr.Dataset({"rain": amounts}, coordinates).to_netcdf(path)
    return path


def test_scores_at_gauges_left_out_rank_the_methods(rain, gauges):
    radar, mean, by_range = left_out(pairs_of(rain[1], gauges, 1.0), METHODS)
    assert radar.pairs == np.isfinite(gauges.amount).sum()
    assert radar.bias < 0.5
    assert mean.bias == pytest.approx(1, abs=0.1)
    assert by_range.bias == pytest.approx(1, abs=0.1)
    assert radar.rmse > 1.4 * mean.rmse
    assert mean.rmse > 1.4 * by_range.rmse


def test_a_mosaic_has_no_range(rain, gauges):
    sums = rain[1].assign_attrs(source="weather radars, ODIM_H5, stations a, b")
    pairs = pairs_of(sums, gauges, 1.0)
    with pytest.raises(SettingsError, match="--method: expected mean, found 'range'"):
        adjusted(sums, pairs, "range", 1.0)
    assert "adjustment" in adjusted(sums, pairs, "mean", 1.0)


@pytest.mark.parametrize("write", [write_csv, write_netcdf])
def test_the_command_adjusts_the_whole_map(rain, gauges, tmp_path, capsys, write):
    truth, sums = rain
    write_dataset(sums, tmp_path / "sums.nc")
    file = write(gauges, tmp_path / ("g.csv" if write is write_csv else "g.nc"))
    words = [str(tmp_path / "sums.nc"), str(file), "--out", str(tmp_path / "out.nc")]
    assert run(app, ["adjust", *words, "--method", "range"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["method"] for row in rows] == ["radar", "mean", "range"]
    with xr.open_dataset(tmp_path / "out.nc") as made:
        amount = made["rain_sum"].isel(window=0)
        hour = ((made["time"].values - START) / np.timedelta64(1, "h")).astype(int) - 1
        assert float(np.abs(amount / truth[hour] - 1).mean()) < 0.15
        assert made["adjustment"].dims == ("time", "y", "x")
        assert "adjusted to gauges, range" in made["rain_sum"].attrs["comment"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("station,lat\na,1", "expected columns station, .* none named latitude, longitude"),
        ("{head}\na,50,5,noon,1", "line 2: expected numbers and a time"),
        ("{head}\na,50,5,2020-06-01T01:00Z,-1", "expected amounts of 0 mm or more, found -1 of a"),
        ("{head}\na,50,5,2020-06-01T01:00Z,1\na,50,5,2020-06-01T01:00Z,2", "line 3: .*one amount"),
        ("{head}", "expected lines of gauges"),
        ("{head}\na,10,5,2020-06-01T01:00Z,1", "gauges in cells with a sum at its time"),
        ("{head}\na,50,5,2019-06-01T01:00Z,1", "gauges in cells with a sum at its time"),
    ],
)
def test_bad_gauges_are_refused_in_one_sentence(rain, tmp_path, text, sentence):
    file = tmp_path / "gauges.csv"
    file.write_text(text.replace("{head}", "station,latitude,longitude,time,mm"))
    with pytest.raises(DataError, match=sentence):
        pairs_of(rain[1], Gauges.read(file), 1.0)
    with pytest.raises(DataError, match="accumulate --over 3h"):
        pairs_of(rain[1], Gauges([], *[np.zeros(0)] * 4), 3.0)
