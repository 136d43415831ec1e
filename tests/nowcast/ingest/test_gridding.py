"""Gate weights: sums, uniform fields, missing gates, places as in xradar; opened volumes."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import nowcast
from daskdl.errors import DataError
from nowcast.ingest.gridding import Geometry, gate_weights
from nowcast.radar.header import Site
from nowcast.rain.grid import Grid

SITE = Site(51.07, 5.41, 140.0)


def geometry(rays: int = 360, gates: int = 100, step: float = 500.0, **changes) -> Geometry:
    azimuth = (np.arange(rays) + 0.5) * 360 / rays
    values = {"site": SITE, "elevation": 0.5, "azimuth": tuple(azimuth.tolist())}
    values |= {"first": step / 2, "step": step, "gates": gates}
    return Geometry(**(values | changes))


def grid(size: int = 64, spacing: float = 1000.0, **changes) -> Grid:
    return Grid.around(SITE.latitude, SITE.longitude, size=(size, size), spacing=spacing, **changes)


@settings(max_examples=25)
@given(
    rays=st.integers(40, 720),
    gates=st.integers(2, 150),
    step=st.sampled_from([125.0, 250.0, 1000.0]),
    spacing=st.sampled_from([100.0, 700.0, 5000.0]),
    elevation=st.floats(0, 20),
)
def test_weights_of_a_cell_add_up_to_one_or_nothing(rays, gates, step, spacing, elevation):
    weights = gate_weights(geometry(rays, gates, step, elevation=elevation), grid(24, spacing))
    total = weights.matrix.sum(axis=1)
    assert np.all((np.abs(total - 1) < 1e-5) | (total == 0))
    assert weights.matrix.data.min(initial=0) >= 0


@settings(max_examples=25)
@given(value=st.floats(0.125, 100, width=32), rays=st.integers(40, 500))
def test_a_uniform_field_stays_uniform(value, rays):
    shape = geometry(rays)
    rain = gate_weights(shape, grid()).apply(np.full((rays, 100), value, np.float32))
    np.testing.assert_allclose(rain, value, rtol=1e-5)


def test_only_cells_beyond_the_last_gate_are_missing():
    cells = grid(128)
    shape = geometry()
    rain = gate_weights(shape, cells).apply(np.zeros((360, 100), np.float32))
    distance = np.hypot(*np.meshgrid(cells.x, cells.y))
    last = shape.ground_range(np.array([100 * 500.0]))[0]
    assert np.isnan(rain[distance > last + 1000]).all()
    assert (rain[distance < last - 1000] == 0).all()


def test_a_cell_has_the_mean_of_its_gates():
    shape, cells = geometry(), grid(40, 2000.0)
    values = np.random.default_rng(1).exponential(1, (360, 100)).astype(np.float32)
    rain = gate_weights(shape, cells).apply(values)
    angle = np.radians(shape.azimuth)[:, None]
    ground = shape.ground_range(250 + 500.0 * np.arange(100))
    x, y = ground * np.sin(angle), ground * np.cos(angle)
    inside = (np.abs(x - cells.x[25]) <= 1000) & (np.abs(y - cells.y[13]) <= 1000)
    assert inside.sum() > 3
    assert rain[13, 25] == pytest.approx(values[inside].mean(), rel=1e-5)


def test_cells_have_a_mean_of_rates_not_of_decibels():
    shape, cells = geometry(), grid(10, 8000.0)
    values = np.zeros((360, 100), np.float32)
    values[::2] = 10.0
    rain = gate_weights(shape, cells).apply(values)
    assert rain[2, 2] == pytest.approx(5.0, rel=0.2)


def test_missing_gates_are_left_out_and_lost_cells_are_missing():
    shape, cells = geometry(), grid(34, 2000.0)
    values = np.ones((360, 100), np.float32)
    values[:180] = np.nan
    values[200, 50] = np.nan
    rain = gate_weights(shape, cells).apply(values)
    assert np.isnan(rain[:, 18:]).all()
    np.testing.assert_allclose(rain[:, :16], 1.0, rtol=1e-5)


def test_a_sector_that_was_not_scanned_is_missing():
    azimuth = tuple((np.arange(180) + 0.5).tolist())
    rain = gate_weights(geometry(azimuth=azimuth), grid()).apply(np.ones((180, 100), np.float32))
    assert np.isnan(rain[:, :30]).all()
    np.testing.assert_allclose(rain[:, 34:], 1.0, rtol=1e-5)


def test_a_single_ray_fills_the_cells_of_its_gates_alone():
    rain = gate_weights(geometry(azimuth=(90.0,)), grid()).apply(np.ones((1, 100), np.float32))
    assert [*map(len, map(set, np.nonzero(rain == 1.0)))] == [1, 32]
    assert np.isnan(rain).sum() == rain.size - 32


def test_one_lost_ray_is_bridged():
    azimuth = tuple((np.delete(np.arange(360), 77) + 0.5).tolist())
    rain = gate_weights(geometry(azimuth=azimuth), grid()).apply(np.ones((359, 100), np.float32))
    assert not np.isnan(rain).any()


def test_slant_and_ground_range_are_inverse():
    shape = geometry(elevation=3.0)
    ranges = np.linspace(100, 250_000, 50)
    np.testing.assert_allclose(shape.slant_range(shape.ground_range(ranges)), ranges, rtol=1e-9)


def test_gates_lie_where_xradar_puts_them(helchteren):
    import xarray as xr
    import xradar  # noqa: F401

    with xr.open_dataset(helchteren[0], engine="odim", group="sweep_0") as sweep:
        placed = sweep.load().xradar.georeference()
        shape = Geometry.of(
            Site(float(sweep.latitude), float(sweep.longitude), float(sweep.altitude)),
            0.3,
            sweep["azimuth"].values,
            sweep["range"].values,
        )
    ground = shape.ground_range(sweep["range"].values)
    angle = np.radians(sweep["azimuth"].values)[:, None]
    x = placed["x"].transpose("azimuth", "range").values
    y = placed["y"].transpose("azimuth", "range").values
    assert np.abs(ground * np.sin(angle) - x).max() < 5
    assert np.abs(ground * np.cos(angle) - y).max() < 5


def test_another_projection_gives_the_same_rain_at_the_same_place():
    shape = geometry()
    values = np.zeros((360, 100), np.float32)
    values[40:50, 60:70] = 20.0
    utm = Grid("EPSG:32631", x0=640_000.0, y0=5_630_000.0, dx=1000.0, dy=1000.0, nx=90, ny=80)
    here, there = grid(), utm
    places = []
    for cells in (here, there):
        rain = gate_weights(shape, cells).apply(values)
        lat, lon = cells.latitude_longitude()
        heavy = rain > 10
        places.append((lat[heavy].mean(), lon[heavy].mean()))
    assert places[0] == pytest.approx(places[1], abs=0.005)


def test_repeated_scans_share_weights():
    shape = Geometry.of(SITE, 0.501, np.arange(360) + 0.5001, 125 + 250.0 * np.arange(10))
    again = Geometry.of(SITE, 0.499, np.arange(360) + 0.4999, 125 + 250.0 * np.arange(10))
    assert gate_weights(shape, grid(8)) is gate_weights(again, grid(8))


GRID = nowcast.Grid.around(50.0, 5.0, size=(20, 20), spacing=2000.0)


def sweep(dbz: np.ndarray) -> xr.Dataset:
    """A sweep of 360 rays and 100 gates of 250 m."""
    azimuth, time = np.arange(360) + 0.5, np.full(360, np.datetime64("2020-06-01", "ns"))
    return xr.Dataset(
        {"DBZH": (("azimuth", "range"), dbz, {"units": "dBZ"})},
        {
            "azimuth": azimuth, "range": 125 + 250.0 * np.arange(100), "time": ("azimuth", time),
            "elevation": ("azimuth", np.full(360, 0.5)), "latitude": 50.0, "longitude": 5.0,
            "altitude": 100.0,
        },
    )  # fmt: skip


def test_rain_no_echo_and_missing_stay_apart():
    dbz = np.full((360, 100), 30.0)
    dbz[:180], dbz[180:270] = -32.0, np.nan  # east, south-west; rain in the north-west
    root = xr.Dataset(coords={"latitude": 50.0, "longitude": 5.0, "altitude": 100.0})
    tree = xr.DataTree.from_dict({"/": root, "/sweep_0": sweep(dbz)})
    for volume in (tree, sweep(dbz)):
        rain = nowcast.grid(volume, GRID)["rain_rate"].values[0]
        assert rain[10, 14] == 0
        assert np.isnan(rain[6, 6])
        np.testing.assert_allclose(rain[13, 6], (1000 / 200) ** (1 / 1.6), rtol=1e-4)
    with pytest.raises(DataError, match="expected a sweep with reflectivity"):
        nowcast.grid(sweep(dbz).drop_vars("DBZH"), GRID)
    far = nowcast.Grid.around(10.0, 5.0, size=(4, 4), spacing=1000.0)
    with pytest.raises(DataError, match="reaches no cell"):
        nowcast.grid(sweep(dbz), far)
