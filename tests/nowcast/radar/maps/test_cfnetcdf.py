"""CF netCDF: a day of the BOM, and rates and accumulations as others write them."""

from __future__ import annotations

import warnings
from datetime import datetime

import netCDF4
import numpy as np
import pyproj
import pytest
import xarray as xr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daskdl.errors import DataError
from nowcast.radar.header import Format
from nowcast.radar.reader import read_header, read_rain
from nowcast.rain.grid import Grid
from nowcast.rain.rainrate import ZRRelation
from nowcast.rain.store import write_zarr
from tests.nowcast.stores import moving_rain

NAME = "bom/prcp-c10/66/2020/10/31/66_20201031_060000.prcp-c10.nc"


def maps(standard_name="rainfall_rate", units="mm h-1", **time) -> xr.Dataset:
    rain = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    rain[0, 0, 0] = np.nan
    attributes = {"standard_name": standard_name, "units": units, "grid_mapping": "proj"}
    axes = {
        name: (name, values, {"standard_name": f"projection_{name}_coordinate", "units": "km"})
        for name, values in (("y", [3.0, 2.0, 1.0]), ("x", [1.0, 2.0, 3.0, 4.0]))
    }
    times = np.array(["2020-01-01T00:10", "2020-01-01T00:20"], "datetime64[ns]")
    crs = pyproj.CRS("+proj=aeqd +lat_0=50 +lon_0=5").to_cf()
    dataset = xr.Dataset(
        {"rain": (("time", "y", "x"), rain, attributes), "proj": ((), np.int8(0), crs)},
        coords=axes | {"time": ("time", times, {"standard_name": "time"} | time)},
        attrs={"Conventions": "CF-1.7"},
    )
    if "bounds" in time:
        edges = np.stack([times - np.timedelta64(10, "m"), times], 1)
        dataset["edges"] = (("time", "two"), edges)
        dataset["time"].encoding = {"units": "seconds since 1970-01-01"}
    return dataset


def write(dataset: xr.Dataset, path, format="NETCDF4"):
    dataset.to_netcdf(path, format=format, engine="netcdf4")
    return path


@pytest.mark.slow
def test_bom_accumulations_become_rates_at_the_end_of_the_interval(radar_dir):
    header = read_header(radar_dir / NAME)
    assert header.times == (np.datetime64("2020-10-31T06:00:00"),)
    assert header.accumulation == np.timedelta64(10, "m")
    assert header.grid.shape == (512, 512)
    assert (header.grid.dx, header.grid.y0) == (500.0, -127_750.0)
    rain = read_rain(header, 0, ZRRelation())
    with xr.open_dataset(radar_dir / NAME, engine="netcdf4") as dataset:
        np.testing.assert_allclose(rain, dataset["precipitation"].values[::-1] * 6, rtol=1e-5)
    assert np.nanmax(rain) == pytest.approx(90.6)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(
    st.sampled_from(["09:50:00", "09:50:00.0", "9:50:0", "09:50"]),
    st.sampled_from(["", "+", "-"]), st.sampled_from([":", ""]),
    st.integers(0, 14), st.sampled_from([0, 30, 45]),
)  # fmt: skip
def test_a_time_zone_needs_no_sign(tmp_path, clock, sign, colon, hours, minutes):
    """All files of ARM have a zone; xarray alone drops the hours before one without a sign."""
    zone = f"{hours}:{minutes:02d}" if colon else f"{hours:02d}{minutes:02d}"
    path = write(maps(), tmp_path / "a.nc")
    with netCDF4.Dataset(path, "a") as file:
        time = file["time"]
        time[:] = [10, 20]
        time.units = f"minutes since 2020-01-01 {clock} {sign}{zone}"
    behind = np.timedelta64(60 * hours + minutes, "m") * (-1 if sign == "-" else 1)
    assert read_header(path).times[0] == np.datetime64("2020-01-01T10:00") - behind


@pytest.mark.parametrize(
    ("clock", "kind", "sentence"),
    [("CEST", "f8", "a zone such as .02:00, found 'since 2024-06-01 12:00 CEST'"),
     ("UTC+2", "f8", "expected times in UTC"), ("UTC", "f8", None),
     ("noleap", "f8", "expected times of the calendar standard, found noleap"),
     ("", "f4", "numbers of float32 that step by 128 s")],
)  # fmt: skip
def test_times_that_would_be_believed_wrongly_are_refused(tmp_path, clock, kind, sentence):
    path = write(maps().isel(time=0).drop_vars("time"), tmp_path / "a.nc")
    with netCDF4.Dataset(path, "a") as file:
        file.createDimension("t", 1)  # which the rain does not have
        time = file.createVariable("time", kind, ("t",))
        time.standard_name = "time"
        time.units = (
            f"minutes since 2024-06-01 12:00 {clock}" if clock else "seconds since 1970-1-1"
        )
        if clock == "noleap":
            time.units, time.calendar = "days since 2024-06-01", clock
        time[:] = 5 if clock else 1_717_243_200
    if sentence is None:
        assert read_header(path).times == (np.datetime64("2024-06-01T12:05"),)
    else:
        with pytest.raises(DataError, match=sentence):
            read_header(path)


#: Names and units of rain, and one unit in mm/h, where an amount is of ten minutes.
UNITS = [
    ("precipitation_flux", "kg m-2 s-1", 3600.0),
    ("lwe_precipitation_rate", "m s-1", 3.6e6),
    ("precipitation_amount", "kg m-2", 6.0),
    ("lwe_thickness_of_precipitation_amount", "m", 6000.0),
]


@pytest.mark.parametrize("packed", [False, True])
def test_values_outside_of_the_valid_range_are_missing(tmp_path, packed):
    dataset = maps()
    dataset.rain.attrs["valid_min"] = 4.0
    if packed:
        dataset.rain.encoding = {"dtype": "int16", "scale_factor": 0.5, "_FillValue": -1}
        dataset.rain.attrs = dataset.rain.attrs | {"valid_min": np.int16(8)}
    dataset.rain.attrs["valid_max"] = np.int16(40) if packed else 20.0
    path = write(dataset, tmp_path / "a.nc")
    header = read_header(path)
    first, second = (read_rain(header, index, ZRRelation()) for index in (0, 1))
    np.testing.assert_array_equal(first[2], np.full(4, np.nan))
    np.testing.assert_array_equal(first[1], [4, 5, 6, 7])
    np.testing.assert_array_equal(second[0], [20, np.nan, np.nan, np.nan])


@pytest.mark.parametrize("wrong", [False, True])
def test_latitudes_and_longitudes_are_compared_with_the_grid_mapping(tmp_path, wrong):
    dataset = maps()
    grid = read_header(write(dataset, tmp_path / "a.nc")).grid
    latitude, longitude = grid.latitude_longitude()
    for name, values in (("latitude", latitude[::-1] + wrong), ("longitude", longitude[::-1])):
        dataset[name[:3]] = (("y", "x"), values, {"standard_name": name})
    path = write(dataset, tmp_path / "b.nc")
    if wrong:
        with pytest.raises(DataError, match="agree with the grid mapping, found corners up to 111"):
            read_header(path)
    else:
        assert read_header(path).grid == grid


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda ds: ds, None),
        (lambda ds: ds.drop_vars("proj"), "expected a grid mapping of rain, found 'proj'"),
        (lambda ds: ds.drop_vars("time"), "expected a time of the rain"),
        (lambda ds: ds.isel(x=[0, 1, 3]), "expected x to increase in equal steps"),
        (lambda ds: ds.assign(rain=ds.rain.assign_attrs(standard_name="air")), "found rain, proj"),
        (
            lambda ds: ds.assign(
                rain=ds.rain.assign_attrs(standard_name="precipitation_amount")
            ).isel(time=[0]),
            "rain is an accumulation; expected the interval's start",
        ),
    ],
)
def test_missing_metadata_are_named(tmp_path, change, sentence):
    path = write(change(maps()), tmp_path / "a.nc")
    if sentence is None:
        assert read_header(path).station == "CF netCDF"
        return
    with pytest.raises(DataError, match=rf"a\.nc: .*{sentence}"):
        read_header(path)


@pytest.mark.parametrize("axis", ["x", "y"])
@pytest.mark.parametrize("off", [0, 0.5, 10])
def test_coordinates_lie_in_the_middle_of_their_bounds(tmp_path, axis, off):
    dataset = maps()
    edges = dataset[axis].values[:, np.newaxis] + [off - 0.5, off + 0.5]
    dataset[axis].attrs["bounds"] = "edges"
    dataset["edges"] = ((axis, "two"), edges)
    path = write(dataset, tmp_path / "a.nc")
    if off:
        with pytest.raises(DataError, match=f"{axis} in the middle of its bounds, found it {off}"):
            read_header(path)
    else:
        assert read_header(path).grid.shape == (3, 4)


def test_unknown_units_are_refused(tmp_path):
    header = read_header(write(maps(units="inch"), tmp_path / "a.nc"))
    with pytest.raises(DataError, match="found 'inch'"):
        read_rain(header, 0, ZRRelation())


def test_an_export_of_pysteps_is_read_back(radar_dir, tmp_path):
    """pysteps' netCDF has no standard name, and its projection counts in kilometres."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pysteps = pytest.importorskip("pysteps.io")
    origin = sorted((radar_dir / "knmi").rglob("*.h5"))[36]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        amount, _, metadata = pysteps.import_knmi_hdf5(str(origin))
        exporter = pysteps.exporters.initialize_forecast_exporter_netcdf(
            str(tmp_path), "rain", datetime(2010, 8, 26, 3), 5, 2, amount.shape,
            metadata | {"unit": "mm/h"},
        )  # fmt: skip
        pysteps.export_forecast_dataset(np.stack([12 * amount] * 2), exporter)
        pysteps.close_forecast_files(exporter)
    header, expected = read_header(tmp_path / "rain.nc"), read_header(origin)
    assert [str(time)[11:16] for time in header.times] == ["03:05", "03:10"]
    assert header.grid.matches(expected.grid)
    np.testing.assert_allclose(
        read_rain(header, 1, ZRRelation()), read_rain(expected, 0, ZRRelation()), rtol=1e-6
    )


def test_members_levels_and_lead_times_are_no_observation(tmp_path):
    made = np.datetime64("2020-01-01", "ns")
    steps = maps().rename(time="step").assign_coords(time=((), made, {"standard_name": "time"}))
    for dataset, sentence in (
        (maps().expand_dims(ens_number=3), "one rain map a time, found 3 ens_number of rain"),
        (maps().expand_dims(z=2), "one rain map a time, found 2 z of rain"),
        (steps.drop_vars("step"), "one rain map a time, found 2 step of rain"),
        (
            maps().assign_coords(run=((), made, {"standard_name": "forecast_reference_time"})),
            "found a forecast made at 2020-01-01T00:00",
        ),
    ):
        with pytest.raises(DataError, match=sentence):
            read_header(write(dataset, tmp_path / "a.nc"))


def test_reflectivity_becomes_rain_by_the_relation(tmp_path):
    dataset = maps()
    attributes = {"standard_name": "equivalent_reflectivity_factor", "units": "dBZ"}
    dataset["rain"] = (dataset["rain"] * 0 + 23.0103).assign_attrs(dataset["rain"].attrs)
    dataset["rain"].attrs |= attributes
    header = read_header(write(dataset, tmp_path / "a.nc"))
    assert header.reflectivity
    rain = read_rain(header, 0, ZRRelation())
    assert np.nanmax(rain) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize(
    "more", [{"crs_wkt": pyproj.CRS("EPSG:28992").to_wkt()}, {"false_easting": 1e5}]
)
def test_a_text_and_attributes_of_one_grid_mapping_agree_or_are_refused(tmp_path, more):
    dataset = maps()
    dataset["proj"].attrs |= more
    with pytest.raises(DataError, match="expected crs_wkt to say what the attributes of the grid"):
        read_header(write(dataset, tmp_path / "a.nc"))


def test_amounts_without_bounds_are_over_the_step_of_their_times(tmp_path):
    dataset = maps()
    dataset["rain"].attrs |= {"standard_name": "rainfall_amount", "units": "kg m-2"}
    header = read_header(write(dataset, tmp_path / "a.nc"))
    assert header.accumulation == dataset["time"].values[1] - dataset["time"].values[0]


def test_a_store_of_this_program_can_be_read(tmp_path):
    dataset = moving_rain()
    write_zarr(dataset, tmp_path / "rain.zarr")
    header = read_header(tmp_path / "rain.zarr")
    assert header.format is Format.CFZARR
    assert header.grid.matches(Grid.from_dataset(dataset))
    assert len(header.times) == dataset.sizes["time"]
    np.testing.assert_array_equal(
        read_rain(header, 5, ZRRelation()), dataset["rain_rate"].values[5]
    )


def test_times_further_apart_than_usual_have_a_gap_between_them(tmp_path):
    dataset = xr.concat([maps()] * 2, "time", data_vars="minimal")
    minutes = np.array([0, 5, 10, 25]) * np.timedelta64(1, "m")
    times = np.datetime64("2020-01-01", "ns") + minutes
    dataset = dataset.assign_coords(time=("time", times, {"standard_name": "time"}))
    dataset["rain"].attrs |= {"standard_name": "rainfall_amount", "units": "mm"}
    assert read_header(write(dataset, tmp_path / "a.nc")).accumulation == np.timedelta64(5, "m")
    uneven = dataset.isel(time=[0, 1, 3])
    with pytest.raises(DataError, match="found lengths of 5, 20 min"):
        read_header(write(uneven, tmp_path / "b.nc"))


@pytest.mark.parametrize("named", [True, False])
def test_coordinates_in_degrees_are_a_grid(tmp_path, named):
    dataset = maps().drop_vars("proj")
    del dataset["rain"].attrs["grid_mapping"]
    axes = {
        "y": ("y", [52.0, 51.0, 50.0], {"units": "degrees_north", "standard_name": "latitude"}),
        "x": ("x", [4.0, 5.0, 6.0, 7.0], {"units": "degrees_east", "standard_name": "longitude"}),
    }
    dataset = dataset.assign_coords(axes)
    if not named:
        dataset = dataset.rename(x="lon", y="lat")
        for name in ("lon", "lat"):
            del dataset[name].attrs["standard_name"]
    header = read_header(write(dataset, tmp_path / "a.nc"))
    with pytest.raises(DataError, match=r"expected .* in two or more equal steps of degrees"):
        read_header(write(dataset.isel({dataset.rain.dims[2]: [0, 1, 3]}), tmp_path / "b.nc"))
    latitude, longitude = header.grid.latitude_longitude()
    np.testing.assert_allclose(latitude[:, 0], [50, 51, 52], atol=0.3)
    np.testing.assert_allclose(longitude[0], [4, 5, 6, 7], atol=1e-6)
    rain = read_rain(header, 1, ZRRelation())
    np.testing.assert_array_equal(rain, maps()["rain"].values[1, ::-1])


@pytest.mark.parametrize("names", [("lon", "lat"), ("longitude", "latitude"), ("rlon", "rlat")])
def test_degrees_around_a_rotated_pole_are_not_those_of_the_earth(tmp_path, names):
    pole = {"grid_north_pole_latitude": 39.25, "grid_north_pole_longitude": -162.0}
    dataset = maps().rename(x=names[0], y=names[1])
    dataset["proj"].attrs = {"grid_mapping_name": "rotated_latitude_longitude"} | pole
    for name, values in zip(names, ([354.0, 354.1, 354.2, 354.3], [2.2, 2.1, 2.0]), strict=True):
        dataset = dataset.assign_coords({name: (name, values, {"units": "degrees"})})
    grid = read_header(write(dataset, tmp_path / "a.nc")).grid
    rotated = pyproj.CRS.from_cf(dict(dataset["proj"].attrs))
    to_degrees = pyproj.Transformer.from_crs(rotated, rotated.source_crs, always_xy=True)
    there = to_degrees.transform(*np.meshgrid(dataset[names[0]] - 360, dataset[names[1]][::-1]))
    np.testing.assert_allclose(grid.latitude_longitude(), there[::-1], atol=1e-6)

    dataset["proj"].attrs = pole | {"grid_mapping_name": "latitude_longitude"}
    dataset[names[0]].attrs["standard_name"] = "grid_longitude"
    dataset[names[1]].attrs["standard_name"] = "grid_latitude"
    with pytest.raises(DataError, match="around a rotated pole that the grid mapping states"):
        read_header(write(dataset, tmp_path / "b.nc"))


def test_imerg_has_transposed_maps_in_a_group_and_julian_days(tmp_path):
    """GPM's 3B-HHR has no standard name, and its time is the start of the half hour."""
    start = np.array([1403740800], np.int32)  # of 2024-06-30, 00:00
    rain = np.arange(12, dtype=np.float32).reshape(1, 4, 3)
    rain[0, 3, 0] = -9999.9
    since = {"units": "seconds since 1980-01-06 00:00:00 UTC", "calendar": "julian"}
    of_rain = {"units": "mm/hr", "_FillValue": np.float32(-9999.9), "CodeMissingValue": "-9999.9"}
    grid = xr.Dataset(
        {
            "precipitation": (("time", "lon", "lat"), rain, of_rain),
            "time_bnds": (("time", "nv"), start[:, np.newaxis] + [0, 1800], since),
        },
        coords={
            "time": ("time", start, since | {"standard_name": "time", "bounds": "time_bnds"}),
            "lon": ("lon", np.float32([4, 5, 6, 7]), {"units": "degrees_east"}),
            "lat": ("lat", np.float32([50, 51, 52]), {"units": "degrees_north"}),
        },
    )
    path = tmp_path / "3B-HHR.HDF5"
    grid.to_netcdf(path, group="Grid", engine="netcdf4")
    header = read_header(path)
    assert header.times == (np.datetime64("2024-06-30T00:30"),)
    values = read_rain(header, 0, ZRRelation())
    expected = np.where(rain[0].T < 0, np.nan, rain[0].T)
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_allclose(header.grid.latitude_longitude()[1][0], [4, 5, 6, 7], atol=1e-6)


@pytest.mark.parametrize(
    ("name", "units", "code"),
    [
        ("rainfall_rate", "mm h-1", 9999), ("rainfall_rate", "mm h-1", 999),
        ("rainfall_amount", "mm", 9999), ("equivalent_reflectivity_factor", "dBZ", 999),
        ("equivalent_reflectivity_factor", "dBZ", -9999), ("rainfall_rate", "mm h-1", 1e30),
    ],
)  # fmt: skip
@pytest.mark.parametrize("hours", [None, 24])
def test_an_impossible_number_is_missing_or_refused_in_many_cells(
    tmp_path, name, units, code, hours
):
    dataset = maps(name, units)
    if hours:  # 9999 mm of a day are no more than 417 mm/h
        days = dataset.time.values[0] + np.arange(2) * np.timedelta64(24, "h")
        dataset = dataset.assign_coords(time=dataset.time.copy(data=days))
    for cells, path in ((3, tmp_path / "few.nc"), (4, tmp_path / "many.nc")):
        dataset["rain"][0, 1, :cells] = code
        header = read_header(write(dataset, path))
        assert np.isfinite(read_rain(header, 1, ZRRelation())).all()
        if cells == 3:
            rain = read_rain(header, 0, ZRRelation())
            assert np.argwhere(np.isnan(rain)).tolist() == [[1, 0], [1, 1], [1, 2], [2, 0]]
        else:
            with pytest.raises(DataError, match="does not declare; set its _FillValue"):
                read_rain(header, 0, ZRRelation())
