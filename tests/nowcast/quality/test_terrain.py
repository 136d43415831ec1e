"""The blockage of a terrain model follows Bech, from files of any kind, and ingest uses it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from daskdl.console import run
from daskdl.errors import DataError
from nowcast.cli import app
from nowcast.ingest.ingest import ingest
from nowcast.quality.clean import clean
from nowcast.quality.climate import open_climate
from nowcast.quality.terrain import ALL, beam_blockage, terrain_loss
from nowcast.radar.header import Site
from nowcast.radar.polar.geometry import Geometry
from nowcast.radar.polar.sweep import Sweep
from nowcast.rain.store import open_rain
from nowcast.simulate import Radar, simulate

RADAR = Radar(blocked=(), gap=0.0, elevations=(0.5,))
SITE = Site(RADAR.latitude, RADAR.longitude, RADAR.height)
GATES = Geometry.of(SITE, 0.5, RADAR.azimuth, RADAR.range)


def terrain(hill: float) -> xr.DataArray:
    """Return flat land of 50 m with a north-south ridge 20 km east of the radar."""
    lat, lon = np.arange(48.0, 52.001, 0.01), np.arange(2.0, 8.001, 0.01)
    heights = np.full((lat.size, lon.size), 50.0, np.float32)
    heights[:, np.abs(lon - 5.28) < 0.02] = hill
    return xr.DataArray(heights, {"lat": lat, "lon": lon}, ("lat", "lon"), name="elevation")


def written(folder: Path, kind: str, heights: xr.DataArray) -> Path:
    path = folder / f"terrain.{kind}"
    if kind == "tif":
        rasterio = pytest.importorskip("rasterio")
        shape = {"height": heights.shape[0], "width": heights.shape[1], "count": 1}
        place = rasterio.Affine(0.01, 0.0, 1.995, 0.0, -0.01, 52.005)
        about = {"driver": "GTiff", "crs": "EPSG:4326", "transform": place, "dtype": "float32"}
        with rasterio.open(path, "w", **shape, **about) as file:
            file.write(heights.values[::-1], 1)
    elif kind == "zarr":
        heights.to_dataset().to_zarr(path, consolidated=False)
    else:
        heights[::-1].to_dataset().to_netcdf(path, engine="h5netcdf")
    return path


def test_the_blocked_part_of_a_beam_is_a_segment_of_a_circle():
    radius = np.array(200.0)
    for height, part in ((-300, 0), (-200, 0), (0, 0.5), (200, 1), (500, 1)):
        assert beam_blockage(np.array(100.0 + height), np.array(100.0), radius) == part
    # The segment below a chord at half the radius.
    expected = (np.pi / 3 - np.sqrt(3) / 4) / np.pi
    assert beam_blockage(np.array(0.0), np.array(100.0), radius) == pytest.approx(expected)


def test_blockage_equals_wradlib_s():
    qual = pytest.importorskip("wradlib.qual")
    rng = np.random.default_rng(0)
    ground, radius = rng.uniform(0, 2000, (36, 100)), np.linspace(5, 900, 100)
    beam = np.broadcast_to(np.linspace(50, 1500, 100), ground.shape)
    blocked = beam_blockage(ground, beam, radius)
    assert ((blocked > 0) & (blocked < 1)).sum() > 1000
    with np.errstate(invalid="ignore"):
        theirs = qual.beam_block_frac(ground, beam, np.broadcast_to(radius, ground.shape))
    np.testing.assert_allclose(theirs, blocked, atol=1e-9)


@pytest.mark.parametrize("kind", ["nc", "zarr", "tif"])
def test_behind_a_ridge_the_beam_is_weaker_from_any_file(tmp_path, kind):
    loss = terrain_loss(written(tmp_path, kind, terrain(300.0)), GATES)
    east, west = 90, 270
    at = GATES.range / 1000
    assert not loss[east, at < 17].any()
    beam = RADAR.height + GATES.height_along(np.array(20_000.0))
    part = beam_blockage(np.array(300.0), beam, np.array(20_000.0 * np.radians(0.5)))
    assert loss[east, at > 24] == pytest.approx(-10 * np.log10(1 - part), abs=0.4)
    assert not loss[west].any()
    (tmp_path / "wall").mkdir()
    wall = terrain_loss(written(tmp_path / "wall", kind, terrain(900.0)), GATES)
    assert (wall[east, at > 24] == ALL).all()


def test_terrain_that_does_not_fit_the_radar_is_refused(tmp_path):
    elsewhere = terrain(50.0).assign_coords(lon=np.arange(601) * 0.01 + 40)
    with pytest.raises(DataError, match="expected heights around the radar"):
        terrain_loss(written(tmp_path, "nc", elsewhere), GATES)
    with pytest.raises(DataError, match="expected an antenna above the ground"):
        terrain_loss(written(tmp_path, "nc", terrain(50.0) + 400), GATES)
    (tmp_path / "none.nc").write_text("none")
    for name in ("none.nc", "absent.nc", "absent.zarr"):
        with pytest.raises(DataError, match="expected a terrain model"):
            terrain_loss(tmp_path / name, GATES)


@pytest.mark.slow
def test_a_terrain_model_makes_a_climate_that_ingest_uses(tmp_path, capsys):
    scans, out = tmp_path / "scans", tmp_path / "climate.nc"
    simulate(scans, hours=0.2, step_minutes=5, seed=1, radar=RADAR)
    model = written(tmp_path, "nc", terrain(290.0))
    command = ["climate", str(scans), "--terrain", str(model), "--out", str(out)]
    assert run(app, command) == 0
    assert out.with_suffix(".png").stat().st_size > 10_000
    known = open_climate(out)
    np.testing.assert_allclose(known.blockage, terrain_loss(model, GATES))
    assert not known.ground.any()
    time = np.datetime64("2020-06-01", "ms")
    dbz = np.full((360, 240), 30, np.float32)
    sweep = Sweep(0.5, RADAR.azimuth, RADAR.range, time, SITE, dbz, None)
    gain = clean(sweep, ("climate",), climate=known).sweep.dbz - dbz
    np.testing.assert_allclose(gain, known.blockage, atol=1e-5)
    assert gain[90, -1] > 1
    # Another radar with the same gates has other hills.
    other = replace(sweep, site=Site(51.0, 5.0, 120.0))
    assert np.array_equal(clean(other, ("climate",), climate=known).sweep.dbz, dbz)
    ingest([scans], tmp_path / "rain.zarr", size=64, climate=str(out))
    ingest([scans], tmp_path / "raw.zarr", size=64)
    with open_rain(tmp_path / "rain.zarr") as rain, open_rain(tmp_path / "raw.zarr") as raw:
        gained = rain["rain_rate"].values > raw["rain_rate"].values
    assert gained[:, :, 54:].any()
    assert not gained[:, :, :50].any()
