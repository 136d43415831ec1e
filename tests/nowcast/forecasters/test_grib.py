"""Forecasts in GRIB2: eccodes and cfgrib read the values in their places."""

from __future__ import annotations

import numpy as np
import pytest

from nowcast.forecasters import forecaster
from nowcast.forecasters.predict import predict
from nowcast.forecasters.products import nearest_cells, write_grib
from nowcast.rain.grid import Grid
from tests.nowcast.stores import moving_rain

pytest.importorskip("pyproj")  # before eccodes, see load_eccodes
eccodes = pytest.importorskip("eccodes")


@pytest.fixture(scope="module")
def forecast():
    return predict(forecaster("steps"), moving_rain(), lead_minutes=20, members=3)


@pytest.fixture(scope="module")
def path(forecast, tmp_path_factory):
    path = tmp_path_factory.mktemp("grib") / "f.grib2"
    write_grib(forecast, path)
    return path


def messages(path):
    with path.open("rb") as file:
        while (message := eccodes.codes_grib_new_from_file(file)) is not None:
            yield message
            eccodes.codes_release(message)


def at(message, latitude, longitude):
    return eccodes.codes_grib_find_nearest(message, latitude, longitude)[0].value


def test_eccodes_reads_fields_probabilities_and_members(forecast, path):
    """Each value equals the forecast's cell at its place, to the precision of the packing."""
    row, column = 20, 12
    latitude = float(forecast["latitude"][row, column])
    longitude = float(forecast["longitude"][row, column])
    expected = {
        0: forecast["rain_rate"], 1: forecast["rain_rate_members"],
        5: forecast["exceedance_probability"],
    }  # fmt: skip
    seen = []
    for message in messages(path):
        keys = {
            name: eccodes.codes_get(message, name)
            for name in ("productDefinitionTemplateNumber", "forecastTime", "dataDate", "dataTime")
        }
        kind, lead = keys["productDefinitionTemplateNumber"], keys["forecastTime"]
        assert keys["dataDate"] == 20200601
        values = expected[kind].sel(lead_time=np.timedelta64(lead, "s"))
        if kind == 1:
            values = values.isel(realization=eccodes.codes_get(message, "perturbationNumber"))
        elif kind == 5:
            scaled = eccodes.codes_get(message, "scaledValueOfLowerLimit")
            threshold = scaled * 10.0 ** -eccodes.codes_get(message, "scaleFactorOfLowerLimit")
            values = values.sel(threshold=threshold * 3600, method="nearest")
            assert values["threshold"] == pytest.approx(threshold * 3600, rel=1e-4)
        factor, step = (100, 0.01) if kind == 5 else (1 / 3600, 1e-6)
        value = at(message, latitude, longitude)
        assert value == pytest.approx(float(values[row, column]) * factor, abs=step)
        corner = values.values[0, 0]
        if np.isnan(corner):
            place = (float(forecast[name][0, 0]) for name in ("latitude", "longitude"))
            assert at(message, *place) == eccodes.codes_get(message, "missingValue")
        seen.append((kind, lead))
    leads, thresholds = 2, forecast.sizes.get("threshold", 0)
    assert len(seen) == leads * (1 + 3 + thresholds)
    assert (5, 1200) in seen


def test_writing_prints_nothing(forecast, tmp_path, capfd):
    write_grib(forecast, tmp_path / "f.grib2")
    assert capfd.readouterr() == ("", "")


def test_cfgrib_opens_the_file_as_a_dataset(forecast, path):
    xr = pytest.importorskip("xarray")
    pytest.importorskip("cfgrib")
    keys = {"productDefinitionTemplateNumber": 1}
    opened = xr.open_dataset(
        path, engine="cfgrib",
        backend_kwargs={"filter_by_keys": keys, "indexpath": ""}, decode_timedelta=True,
    )  # fmt: skip
    (name,) = opened.data_vars
    assert dict(opened[name].sizes)["number"] == 3
    assert opened["step"].values.tolist() == forecast["lead_time"].values.tolist()
    assert opened[name].attrs["units"] == "kg m**-2 s**-1"
    middle = float(forecast["latitude"].mean()), float(forecast["longitude"].mean())
    here = opened[name].sel(latitude=middle[0], longitude=middle[1], method="nearest")
    assert here.shape == (3, 2)


def test_points_lie_on_their_cells():
    grid = Grid.around(50.0, 5.0, size=(40, 60), spacing=2000.0)
    latitude, longitude, cells = nearest_cells(grid)
    north, east = (degrees.ravel() for degrees in grid.latitude_longitude())
    inside = cells >= 0
    assert len(np.unique(cells[inside])) > 0.97 * north.size  # nearly every cell is hit
    points = np.stack(np.meshgrid(latitude, longitude, indexing="ij")).reshape(2, -1)[:, inside]
    apart = np.hypot(
        points[0] - north[cells[inside]],
        (points[1] - east[cells[inside]]) * np.cos(np.radians(50)),
    )  # fmt: skip
    assert apart.max() * 111.2 < 1.45  # km: half a diagonal
