"""Grid: cells, projection and comparison."""

from __future__ import annotations

import numpy as np
import pyproj
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import nowcast
from daskdl.errors import DataError, SettingsError
from nowcast.forecasters import forecaster
from nowcast.forecasters.predict import predict
from nowcast.rain.grid import Grid
from tests.nowcast.stores import rain_of


@given(
    latitude=st.floats(-70, 70),
    longitude=st.floats(-179, 179),
    ny=st.integers(1, 9),
    nx=st.integers(1, 9),
)
def test_a_grid_around_a_radar_is_centred_on_it_and_increases(latitude, longitude, ny, nx):
    grid = Grid.around(latitude, longitude, size=(ny, nx), spacing=500.0)
    assert grid.shape == (ny, nx) == (len(grid.y), len(grid.x))
    assert grid.x.mean() == pytest.approx(0, abs=1e-6)
    assert np.all(np.diff(grid.y) == 500.0)
    if ny % 2 and nx % 2:
        lat, lon = grid.latitude_longitude()
        assert lat[ny // 2, nx // 2] == pytest.approx(latitude, abs=1e-5)
        assert lon[ny // 2, nx // 2] == pytest.approx(longitude, abs=1e-5)


def test_distances_from_the_radar_are_true():
    grid = Grid.around(51.0, 5.0, size=(1, 101), spacing=2000.0)
    lat, lon = grid.latitude_longitude()
    _, _, metres = pyproj.Geod(ellps="WGS84").inv(5.0, 51.0, lon[0, -1], lat[0, -1])
    assert metres == pytest.approx(100_000.0, abs=0.1)


def test_a_chosen_centre_moves_the_window_and_not_the_projection():
    radar = Grid.around(51.0, 5.0, size=(11, 11), spacing=1000.0)
    moved = Grid.around(51.0, 5.0, size=(11, 11), spacing=1000.0, centre=(51.5, 5.5))
    lat, lon = moved.latitude_longitude()
    assert moved.crs == radar.crs
    assert (lat[5, 5], lon[5, 5]) == pytest.approx((51.5, 5.5), abs=1e-6)
    assert not moved.matches(radar)


def test_a_grid_survives_a_dataset():
    grid = Grid.around(51.0, 5.0, size=(7, 9), spacing=1000.0)
    assert Grid.from_dataset(rain_of(np.zeros((1, 7, 9)), [0], grid)).matches(grid)


@pytest.mark.parametrize("change", ["axes", "units", "order"])
def test_rain_in_another_form_is_refused_or_put_in_order(change):
    """On a square grid, rain (time, x, y) would lie elsewhere without a word."""
    grid = Grid.around(51.0, 5.0, size=(64, 64), spacing=1000.0)
    frames = np.zeros((4, 64, 64), np.float32)
    for k, frame in enumerate(frames):
        frame[20:30, 10 + 4 * k : 20 + 4 * k] = 5
    rain = rain_of(frames, [0, 5, 10, 15], grid)
    changed = {
        "axes": rain.transpose("time", "x", "y"),
        "units": rain.assign(rain_rate=rain["rain_rate"].assign_attrs(units="dBZ")),
        "order": rain.isel(time=[3, 1, 0, 2]),
    }[change]
    for made in (
        lambda rain: [(cell.x_km, cell.speed_m_s) for cell in nowcast.track_cells(rain)],
        lambda rain: predict(forecaster("extrapolation"), rain, lead_minutes=10)["rain_rate"],
    ):
        if change == "order":
            np.testing.assert_array_equal(made(rain), made(changed))
        else:
            with pytest.raises(DataError, match=r"expected rain_rate .*found"):
                made(changed)


@pytest.mark.parametrize(
    "other",
    [
        Grid.around(51.0, 5.0, size=(7, 8), spacing=1000.0),
        Grid.around(51.0, 5.0, size=(7, 9), spacing=1100.0),
        Grid.around(51.01, 5.0, size=(7, 9), spacing=1000.0),
    ],
    ids=["size", "spacing", "place"],
)
def test_grids_that_differ_do_not_match(other):
    assert not Grid.around(51.0, 5.0, size=(7, 9), spacing=1000.0).matches(other)


def test_unequal_steps_are_refused_with_the_values():
    with pytest.raises(DataError, match=r"here: expected x to increase in equal steps.*\[0.0, 1.0"):
        Grid.from_coordinates("EPSG:3857", np.array([0.0, 1, 3]), np.arange(3.0), where="here")


def test_a_dataset_without_projection_is_refused():
    with pytest.raises(DataError, match="expected a variable 'crs'"):
        Grid.from_dataset(xr.Dataset(coords={"x": [0.0, 1], "y": [0.0, 1]}))


def test_an_empty_grid_is_refused():
    with pytest.raises(SettingsError, match="at least one cell"):
        Grid.around(0, 0, size=(0, 3), spacing=1.0)


def test_a_grid_in_a_given_projection_lies_around_its_centre():
    grid = nowcast.Grid.around(50.8, 4.4, size=(5, 7), spacing=2000.0, crs="EPSG:3035")
    latitude, longitude = grid.latitude_longitude()
    np.testing.assert_allclose([latitude[2, 3], longitude[2, 3]], [50.8, 4.4], atol=1e-6)
    assert grid.projection.to_epsg() == 3035
    for crs, words in (
        ("EPSG:4326", "expected a projection in metres, found 'WGS 84' in degree"),
        ("EPSG:2263", "in US survey foot"),
        ("Lambert", "expected a projection such as EPSG:3035"),
    ):
        with pytest.raises(SettingsError, match=words):
            nowcast.Grid.around(50.8, 4.4, size=(5, 7), spacing=2000.0, crs=crs)
    with pytest.raises(SettingsError, match="latitude first, then longitude"):
        nowcast.Grid.around(
            50.8, 400, size=(5, 7), spacing=1.0, crs="+proj=gnom +lat_0=-50 +units=m"
        )
