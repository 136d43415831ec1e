"""Forecast files: opened and checked, and the paths that a new one may replace."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from daskdl.errors import DataError, SettingsError
from nowcast.forecasters import file, forecaster
from nowcast.forecasters.file import check_replaceable, open_forecast
from nowcast.forecasters.predict import predict
from nowcast.forecasters.products import write_cog
from nowcast.rain.store import write_dataset
from tests.nowcast.stores import a_forecast, moving_rain, small_model


@pytest.mark.parametrize("name", ["f.zarr", "f.nc"])
def test_a_written_forecast_is_opened_equal(tmp_path, name):
    made = a_forecast()
    write_dataset(made, tmp_path / name)
    with open_forecast(tmp_path / name) as again:
        xr.testing.assert_equal(again, made)
        assert again["rain_rate"].dtype == np.float32
        assert again["lead_time"].dtype.kind == "m"
        assert again["time"].dtype.kind == "M"
        assert again.attrs == made.attrs
        assert again["crs"].attrs["grid_mapping_name"] == "azimuthal_equidistant"
        for variable in made.variables:
            assert again[variable].attrs == made[variable].attrs


@pytest.mark.parametrize("small", [0, 2**28])
def test_members_of_each_lead_time_have_a_file(tmp_path, small, monkeypatch):
    monkeypatch.setattr(file, "SMALL", small)
    made = a_forecast()
    rates = made["rain_rate"].values * np.arange(5, dtype=np.float32)[:, None, None, None]
    made["rain_rate_members"] = ("realization", "lead_time", "y", "x"), rates
    leads = made.sizes["lead_time"]
    parts = (made.isel(lead_time=slice(n, n + 1)) for n in range(leads))
    file.write_leads(parts, leads, tmp_path / "f.zarr")
    written = [
        p for p in (tmp_path / "f.zarr" / "rain_rate_members" / "c").rglob("*") if p.is_file()
    ]
    assert len(written) == leads
    with open_forecast(tmp_path / "f.zarr") as again:
        assert again["rain_rate_members"].encoding["chunks"][:2] == (1, 1)
        np.testing.assert_array_equal(again["rain_rate_members"].values, rates)


def nothing(path):
    pass


def text(path):
    path.write_text("no forecast")


def empty_folder(path):
    path.mkdir()


def folder_of_files(path):
    path.mkdir()
    (path / "thesis.txt").write_text("years of work")


def model(path):
    small_model().save(path)


def rain_store(path):
    write_dataset(moving_rain(), path)


def rain_file(path):
    write_dataset(moving_rain(), path.with_suffix(".nc"))
    path.with_suffix(".nc").rename(path)


def without(*names):
    def write(path):
        write_dataset(a_forecast().drop_vars(names), path)

    return write


@pytest.mark.slow
@pytest.mark.parametrize(
    ("write", "message"),
    [
        (nothing, "expected a forecast as .* writes it, found nothing there"),
        (text, r"found something else \(OSError"),
        (empty_folder, r"found something else \(GroupNotFoundError"),
        (model, r"found something else \(GroupNotFoundError"),
        (rain_store, r"found rain_rate \(time, y, x\)"),
        (rain_file, r"found rain_rate \(time, y, x\)"),
        (without("rain_rate"), "found no rain_rate"),
        (without("time", "y"), "found none of the coordinates time, y"),
    ],
)
def test_other_paths_are_refused_by_name(tmp_path, write, message):
    path = tmp_path / "forecast"
    write(path)
    with pytest.raises(DataError, match=message) as error:
        open_forecast(path)
    assert str(error.value).startswith(f"{path}: expected a forecast")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["f.zarr", "f.nc"])
def test_an_older_forecast_and_nothing_may_be_replaced(tmp_path, name):
    check_replaceable(tmp_path / name)
    write_dataset(a_forecast(), tmp_path / name)
    check_replaceable(tmp_path / name)
    empty_folder(tmp_path / "empty")
    check_replaceable(tmp_path / "empty")


@pytest.mark.slow
@pytest.mark.parametrize("write", [text, folder_of_files, model, rain_store, rain_file])
def test_other_files_are_not_replaced(tmp_path, write):
    path = tmp_path / "valuable"
    write(path)
    with pytest.raises(SettingsError, match=f"--out: .* found something else at {path}; choose"):
        check_replaceable(path)


def test_a_geotiff_has_values_in_their_places(tmp_path):
    rasterio = pytest.importorskip("rasterio")
    forecast = predict(forecaster("sprog"), moving_rain(), lead_minutes=30)
    files = write_cog(forecast, tmp_path / "f.tif")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in files)
    for path, values in (
        ("f.tif", forecast["rain_rate"]),
        ("f_probability_1mmh.tif", forecast["exceedance_probability"].sel(threshold=1.0)),
    ):
        with rasterio.open(tmp_path / path) as file:
            assert file.tags(ns="IMAGE_STRUCTURE")["LAYOUT"] == "COG"
            assert file.descriptions[0] == "+10 min, 2020-06-01T04:00Z"
            assert file.crs.to_dict()["proj"] == "aeqd"
            y, x = float(forecast["y"][20]), float(forecast["x"][5])
            row = int((file.transform.f - y) // -file.transform.e)
            column = int((x - file.transform.c) // file.transform.a)
            np.testing.assert_array_equal(file.read()[:, row, column], values.values[:, 20, 5])
            np.testing.assert_array_equal(file.read(2)[::-1], values.values[1])
