"""CF attributes, and times in UTC."""

from __future__ import annotations

import numpy as np
import pyproj
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from nowcast.rain.cf import CONVENTIONS, describe, grid_coordinates, history_line, rain_dataset
from nowcast.rain.grid import Grid
from nowcast.rain.utc import parse_utc, utc_text

GRID = Grid.around(51.0, 5.0, size=(6, 8), spacing=1000.0)


def test_coordinates_carry_what_cf_asks_for():
    coordinates = grid_coordinates(GRID)
    assert coordinates["x"].attrs["standard_name"] == "projection_x_coordinate"
    assert coordinates["y"].attrs["units"] == "m"
    assert coordinates["latitude"].dims == ("y", "x")
    assert coordinates["crs"].dtype == np.int32
    assert pyproj.CRS.from_cf(coordinates["crs"].attrs) == GRID.projection


@pytest.mark.parametrize(("parallel", "pole"), [(60, 90.0), (-70, -90.0)])
def test_a_polar_stereographic_grid_names_its_pole(parallel, pole):
    crs = f"+proj=stere +lat_0={pole} +lat_ts={parallel} +lon_0=0 +datum=WGS84"
    attributes = grid_coordinates(Grid(crs, 0, 0, 1e3, 1e3, 3, 3))["crs"].attrs
    assert attributes["grid_mapping_name"] == "polar_stereographic"
    assert attributes["latitude_of_projection_origin"] == pole
    assert pyproj.CRS.from_cf(attributes) == pyproj.CRS(crs)


def test_given_attributes_win():
    dataset = rain_dataset(
        GRID,
        np.array(["2020-01-01"], "datetime64[s]"),
        np.zeros((1, 6, 8), np.float32),
        attributes={"cell_methods": "time: mean"},
        global_attributes={"title": "t", "source": "s", "station": "x"},
    )
    assert dataset["rain_rate"].attrs["cell_methods"] == "time: mean"
    assert dataset["time"].dtype == np.dtype("datetime64[ns]")
    assert dataset.attrs["Conventions"] == CONVENTIONS
    assert dataset.attrs["station"] == "x"


def test_history_says_when_and_what():
    line = describe(title="t", source="s")["history"]
    assert line.endswith(": created")
    assert history_line("x")[4] == "-"


@pytest.mark.parametrize(
    "text",
    [
        "2020-02-07T13:20",
        "2020-02-07 13:20:00",
        "2020-02-07T13:20Z",
        " 2020-02-07T13:20Z ",
        "20200207T1320",
        "2020-02-07T14:20+01:00",
        "2020-02-07T08:50-04:30",
    ],
)
def test_one_moment_in_many_words(text):
    assert parse_utc("--at", text) == np.datetime64("2020-02-07T13:20", "ns")


def test_a_day_is_its_midnight():
    assert parse_utc("--at", "2020-02-07") == np.datetime64("2020-02-07T00:00", "s")


@pytest.mark.parametrize(
    "text", ["", " ", "NaT", "now", "today", "latest", "2020-13-01", "13:20", "0001-01-01T00+14:00"]
)
def test_what_is_no_time_is_refused_in_its_words(text):
    with pytest.raises(
        SettingsError, match=r"--from: expected a time such as .* or 'x', found"
    ) as e:
        parse_utc("--from", text, others=" or 'x'")
    assert str(e.value).endswith(f"found {text!r}")


@given(st.datetimes())
def test_what_is_written_is_read_back(time):
    whole = time.replace(microsecond=0)
    text = utc_text(np.datetime64(whole, "us"))
    assert parse_utc("--at", text) == np.datetime64(whole, "us")
    assert len(text) == (16 if whole.second == 0 else 19)
