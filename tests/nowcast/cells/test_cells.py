"""Cells: tracks, speed, parents in mergers and splits, dry and missing frames, the command."""

from __future__ import annotations

import csv
import json

import numpy as np
import pyproj
import pytest
import xarray as xr
from pyarrow import parquet

import nowcast
from daskdl.console import run
from daskdl.errors import SettingsError
from nowcast.cells.motion import arrivals, track_ahead
from nowcast.cli import app
from nowcast.rain.grid import Grid
from nowcast.rain.store import write_dataset
from tests.nowcast.stores import rain_of

GRID = Grid.around(50.0, 5.0, size=(96, 96), spacing=1000.0)
STEP = 5


def store(*paths):
    """Storms of 20 mm/h and 5 km; each path is a list of (x, y) in km on the grid by frame."""
    x, y = np.meshgrid(GRID.x / 1000, GRID.y / 1000)
    frames = np.zeros((max(map(len, paths), default=4), 96, 96), np.float32)
    for path in paths:
        for frame, (px, py) in zip(frames, path, strict=True):
            np.maximum(frame, 20 * np.exp(-((x - px) ** 2 + (y - py) ** 2) / 50), out=frame)
    frames[frames < 0.1] = 0
    return rain_of(frames, STEP * np.arange(len(frames)), GRID)


def test_one_storm_keeps_its_track_and_has_its_speed_and_direction():
    rows = nowcast.track_cells(store([(-20 + 3 * k, -15 + 4 * k) for k in range(8)]))
    assert [cell.track for cell in rows] == [1] * 8
    assert [cell.age_minutes for cell in rows] == [STEP * k for k in range(8)]
    assert [cell.parents for cell in rows] == [(), *((k,) for k in range(1, 8))]
    for k, cell in enumerate(rows):
        assert cell.speed_m_s == pytest.approx(5000 / 300, rel=0.1)
        assert cell.direction_deg == pytest.approx(np.degrees(np.arctan2(3, 4)), rel=0.1)
        assert (cell.x_km, cell.y_km) == pytest.approx((-20 + 3 * k, -15 + 4 * k), abs=0.5)
    # A Gaussian's rain is 2 pi sigma^2 times its peak; the cell has the part above 1 mm/h.
    assert rows[0].volume_m3_h == pytest.approx(20 * np.pi * 50 * 1000, rel=0.1)
    assert rows[0].area_km2 == pytest.approx(np.pi * 50 * np.log(20), rel=0.1)


def test_storms_that_merge_are_both_parents_and_those_that_split_have_one():
    apart = [22, 20, 18, 15, 12, 9, 6, 4, 3]
    ways = [[(side * d, 0) for d in apart] for side in (-1, 1)]
    merged = nowcast.track_cells(store(*ways))
    assert {len(cell.parents) for cell in merged} == {0, 1, 2}
    child = next(cell for cell in merged if len(cell.parents) == 2)
    parents = [cell for cell in merged if cell.id in child.parents]
    assert len({cell.track for cell in parents}) == 2
    assert child.track in {cell.track for cell in parents}
    split = nowcast.track_cells(store(*(way[::-1] for way in ways)))
    children = [cell for cell in split if cell.age_minutes > 0]
    shared = [cell.parents for cell in children]
    twins = [cell for cell in children if shared.count(cell.parents) == 2]
    assert len(twins) == 2
    assert len({cell.track for cell in twins}) == 2


def test_a_core_keeps_its_track_when_it_meets_wide_rain():
    rain = store([(-22 + 5 * k, 0) for k in range(8)])
    x, y = np.meshgrid(GRID.x / 1000, GRID.y / 1000)
    wide = 2 * np.exp(-(((np.hypot(x - 20, y)) / 25) ** 4))
    rain["rain_rate"].values[:] = np.maximum(rain["rain_rate"].values, wide)
    cells = nowcast.track_cells(rain)
    first = next(cell for cell in cells if cell.max_mm_h > 15)
    merged = [cell for cell in cells if len(cell.parents) == 2]
    assert merged
    assert {cell.track for cell in cells if cell.max_mm_h > 15} == {first.track}


def test_missing_data_are_no_cell_and_gaps_end_tracks():
    rain = store([(0, 0)] * 4)
    rain["rain_rate"][:, :, 48:] = np.nan
    rain["time"] = rain["time"] + np.array([0, 0, 40, 40]) * np.timedelta64(1, "m")
    rows = nowcast.track_cells(rain)
    assert [cell.track for cell in rows] == [1, 1, 2, 2]
    assert all(cell.area_km2 < np.pi * 50 * np.log(20) * 0.6 for cell in rows)
    rain["rain_rate"][:] = np.nan
    assert nowcast.track_cells(rain) == []


def test_the_command_writes_polygons_and_tables(tmp_path, capsys):
    write_dataset(store([(3 * k, 0) for k in range(4)]), tmp_path / "rain.zarr")
    write_dataset(store(), tmp_path / "dry.zarr")
    for name in ("rain", "dry"):
        for end in ("geojson", "csv", "parquet"):
            command = [
                "cells",
                str(tmp_path / f"{name}.zarr"),
                "--out",
                str(tmp_path / f"{name}.{end}"),
                "--place",
                "middle=50,5",
            ]
            assert run(app, command) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[1].startswith("middle,1,4,2020-06-01T00:15Z,2020-06-01T00:")
    assert printed.count("place,track,cell,begins,ends") == len(printed) - 3 == 6
    tables = [parquet.read_table(tmp_path / f"{name}.parquet") for name in ("rain", "dry")]
    assert [table.num_rows for table in tables] == [4, 0]
    assert json.loads(tables[0].schema.metadata[b"geo"])["primary_column"] == "geometry"
    (wkb, *_) = tables[0]["geometry"].to_pylist()
    assert json.loads((tmp_path / "dry.geojson").read_text())["features"] == []
    features = json.loads((tmp_path / "rain.geojson").read_text())["features"]
    rows = list(csv.DictReader((tmp_path / "rain.csv").read_text().splitlines()))
    assert len(features) == len(rows) == 4
    assert [row["parents"] for row in rows] == ["", "1", "2", "3"]
    ring = np.array(features[0]["geometry"]["coordinates"][0])
    assert (ring[0] == ring[-1]).all()
    assert wkb[:9] == bytes([1, 3, 0, 0, 0, 1, 0, 0, 0])
    np.testing.assert_allclose(np.frombuffer(wkb[13:]).reshape(-1, 2), ring, atol=1e-5)
    assert ring.mean(0) == pytest.approx((5.0, 50.0), abs=0.01)
    x, y = ring.T
    assert x[:-1] @ y[1:] > x[1:] @ y[:-1]  # counter-clockwise
    assert run(app, ["cells", str(tmp_path / "rain.zarr"), "--out", str(tmp_path / "a.txt")]) != 0
    assert ".geojson, .csv or .parquet" in capsys.readouterr().err


def test_a_cell_moves_with_its_middle_not_with_the_rain_around_it():
    ways = [[(-30 + 1.5 * k, y) for k in range(9)] for y in (-25, 25)]
    ways.append([(-25 + 3.5 * k, 0) for k in range(9)])
    rows = nowcast.track_cells(store(*ways))
    last = {round(cell.y_km / 25): cell for cell in rows if cell.time == rows[-1].time}
    for side, km in ((-1, 1.5), (0, 3.5), (1, 1.5)):
        assert last[side].speed_m_s == pytest.approx(km / 0.3, rel=0.12)
        assert last[side].direction_deg == pytest.approx(90, abs=5)


def test_rain_that_grows_has_a_trend_a_track_ahead_and_an_arrival():
    rain = store([(-30 + 3 * k, 0) for k in range(9)])
    rain["rain_rate"] = rain["rain_rate"] * xr.DataArray(1.1 ** np.arange(9), dims="time")
    cells = nowcast.track_cells(rain)
    assert cells[0].trend_per_h is None
    assert cells[-1].trend_per_h == pytest.approx(1.1**12 - 1, rel=0.5)
    here = cells[-1]
    ahead = track_ahead(here)
    assert [point.minutes for point in ahead] == [15, 30, 45, 60]
    x, y = pyproj.Transformer.from_crs("EPSG:4326", GRID.projection, always_xy=True).transform(
        ahead[1].longitude, ahead[1].latitude
    )
    assert (x / 1000, y / 1000) == pytest.approx((-6 + 18, 0), abs=1.5)
    # The place is 30 km ahead, and the cell's edge comes at 0.6 km a minute.
    places = {
        name: tuple(np.array(GRID.latitude_longitude())[:, 48, column])
        for name, column in (("ahead", 48 - 6 + 30), ("behind", 48 - 6 - 30))
    }
    (arrival,) = arrivals(cells, places)
    assert (arrival.place, arrival.cell) == ("ahead", here.id)
    reach = np.sqrt(here.area_km2 / np.pi)
    start = np.datetime64(here.time[:-1])
    minutes = (np.array([arrival.begins, arrival.ends]) - start) / np.timedelta64(1, "m")
    assert minutes[0] == pytest.approx((30 - reach) / 0.6, abs=5)
    assert minutes[1] == 60


def test_settings_out_of_bounds_are_refused():
    with pytest.raises(SettingsError, match="saddle: expected a share"):
        nowcast.track_cells(store(), saddle=1.0)
    with pytest.raises(SettingsError, match="smooth_km: expected at most the grid's side"):
        nowcast.track_cells(store(), smooth_km=1e30)
