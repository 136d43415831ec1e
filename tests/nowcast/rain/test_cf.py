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
from nowcast.rain.rainrate import RELATIONS, ZRRelation
from nowcast.rain.texts import parse_utc, utc_text

GRID = Grid.around(51.0, 5.0, size=(6, 8), spacing=1000.0)


def test_coordinates_have_the_attributes_of_cf():
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
    assert parse_utc("--at", "2020-02-07") == np.datetime64("2020-02-07", "s")


@pytest.mark.parametrize(
    "text", ["", " ", "NaT", "now", "today", "latest", "2020-13-01", "13:20", "0001-01-01T00+14:00"]
)
def test_a_text_that_is_no_time_is_refused_and_quoted(text):
    with pytest.raises(
        SettingsError, match=r"--from: expected a time such as .* or 'x', found"
    ) as e:
        parse_utc("--from", text, others=" or 'x'")
    assert str(e.value).endswith(f"found {text!r}")


@given(st.datetimes())
def test_a_written_time_is_read_back(time):
    whole = time.replace(microsecond=0)
    text = utc_text(np.datetime64(whole, "us"))
    assert parse_utc("--at", text) == np.datetime64(whole, "us")
    assert len(text) == (16 if whole.second == 0 else 19)


POSITIVE = st.floats(0.5, 1000)


@given(a=POSITIVE, b=st.floats(0.5, 3), rate=st.floats(0.01, 500))
def test_rain_rate_inverts_reflectivity(a, b, rate):
    relation = ZRRelation(a, b, hail_cap=None, noise=None)
    dbz = relation.reflectivity(np.array([rate]))
    np.testing.assert_allclose(relation.rain_rate(dbz), [rate], rtol=1e-4)


@pytest.mark.parametrize("name", RELATIONS)
def test_named_relations_follow_z_equals_a_r_to_the_b(name):
    relation = ZRRelation.named(name, hail_cap=None, noise=None)
    a, b = RELATIONS[name]
    dbz = 10 * np.log10(a * 10.0**b)
    np.testing.assert_allclose(relation.rain_rate(np.array([dbz])), [10.0], rtol=1e-5)


@given(st.lists(st.floats(-40, 80, width=32), min_size=1, max_size=20))
def test_rain_never_falls_with_reflectivity_and_stays_within_noise_and_cap(values):
    relation = ZRRelation()
    rain = relation.rain_rate(np.sort(np.array(values, np.float32)))
    assert rain.dtype == np.float32
    assert np.all(np.diff(rain) >= 0)
    assert np.all((rain == 0) | (rain > 0.09))
    assert rain.max() <= relation.rain_rate(np.array([53.0]))[0]


def test_no_echo_is_zero_and_missing_stays_missing():
    rain = ZRRelation(hail_cap=None, noise=None).rain_rate(np.array([-np.inf, np.nan, -32.0]))
    assert rain[0] == 0
    assert np.isnan(rain[1])
    assert 0 < rain[2] < 1e-3


def test_hail_counts_as_the_cap():
    rain = ZRRelation.named("wsr88d", hail_cap=53).rain_rate(np.array([53.0, 71.5]))
    assert rain[0] == rain[1] == pytest.approx(103.8, abs=0.1)


def test_numbers_make_a_relation():
    relation = ZRRelation.named("250, 1.2")
    assert (relation.a, relation.b, relation.name) == (250, 1.2, "custom")
    assert str(relation) == "Z = 250 R^1.2 (custom), hail cap 53 dBZ, no rain below 7 dBZ"


@pytest.mark.parametrize("choice", ["marshall", "1", "0,1.6", "200,-1", "a,b", "1,2,3"])
def test_other_choices_are_refused_with_the_value(choice):
    with pytest.raises(SettingsError, match=f"found '{choice}'"):
        ZRRelation.named(choice)
