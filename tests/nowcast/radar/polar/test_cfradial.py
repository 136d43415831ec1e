"""CfRadial 1 and 2, as xradar itself exports them from another volume."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager

import netCDF4
import numpy as np
import pytest

from daskdl.errors import DataError
from nowcast.ingest.rain_map import map_scan
from nowcast.ingest.scan import group_scans
from nowcast.ingest.settings import IngestSettings
from nowcast.ingest.sources import target_grid
from nowcast.radar.header import Format
from nowcast.radar.reader import read_header, read_sweeps
from tests.nowcast.radar.odim_file import write_cfradial

# A volume that is scanned upwards: the exporter mixes up the sweeps of others.
NAME = "T_PAGZ35_C_ENMI_20170421090837.hdf"


@pytest.fixture(scope="module")
def exported(polar, tmp_path_factory):
    path = tmp_path_factory.mktemp("cfradial") / "volume.nc"
    return write_cfradial(path, polar / NAME, count=2)


@contextmanager
def edited(exported, path):
    """Yield a copy of the volume at ``path``, open for changes."""
    path.write_bytes(exported.read_bytes())
    with netCDF4.Dataset(path, "r+") as file:
        yield file


@pytest.mark.slow
@pytest.mark.parametrize("format", [Format.CFRADIAL, Format.CFRADIAL2])
def test_an_export_reads_like_its_source(exported, polar, tmp_path, format):
    path = exported
    if format is Format.CFRADIAL2:
        path = write_cfradial(tmp_path / "volume.nc", polar / NAME, version=2, count=2)
    header = read_header(path)
    assert header.format is format
    assert header.site.latitude == pytest.approx(67.5307)
    late = header.times[0] - read_header(polar / NAME).times[0]
    assert np.timedelta64(0) <= late < np.timedelta64(1, "s")
    (sweep,), (origin,) = (
        read_sweeps([p], f) for p, f in ((path, format), (polar / NAME, Format.ODIM))
    )
    assert sweep.elevation == pytest.approx(origin.elevation)
    np.testing.assert_allclose(sweep.azimuth, origin.azimuth, atol=1e-3)
    np.testing.assert_allclose(sweep.range, origin.range)
    np.testing.assert_array_equal(np.isfinite(sweep.dbz), np.isfinite(origin.dbz))
    if format is Format.CFRADIAL:
        np.testing.assert_array_equal(sweep.dbz, origin.dbz)


@pytest.mark.slow
def test_a_time_zone_without_a_sign_is_understood(exported, tmp_path):
    path = tmp_path / "zone.nc"
    with edited(exported, path) as file:
        time = file.variables["time"]
        time[:] = time[:] - time[:].min()
        time.units = "seconds since 2017-04-21 09:07:37 0:00"
    (sweep,) = read_sweeps([path], Format.CFRADIAL)
    start = np.datetime64("2017-04-21T09:07:37.000")
    assert abs(sweep.time - start) < np.timedelta64(1, "s")
    assert read_header(path).times[0] == start


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("azimuth_correction", 90.0, "found azimuth_correction; apply the corrections"),
        ("platform_is_mobile", "true", "expected a radar that stands still"),
        ("time_coverage_start", "2017-04-21T15:07:37Z", "within 60 minutes of time_coverage_start"),
    ],
)
def test_statements_of_the_root_that_sweeps_do_not_follow_are_refused(
    exported, tmp_path, name, value, sentence
):
    path = tmp_path / "said.nc"
    with edited(exported, path) as file:
        if name in file.variables:
            file.renameVariable(name, f"former_{name}")
        if isinstance(value, str):
            file.createVariable(name, str)[...] = value
        else:
            file.createVariable(name, "f4")[...] = value
    with pytest.raises(DataError, match=rf"said\.nc: .*{sentence}"):
        read_header(path)


@pytest.mark.parametrize(
    ("name", "units", "sentence"),
    [("DBZH", "mm6 m-3", "expected DBZH in dBZ"), ("range", "miles", "expected the range in m or")],
)
def test_units_of_another_kind_are_refused(exported, tmp_path, name, units, sentence):
    path = tmp_path / "units.nc"
    with edited(exported, path) as file:
        file.variables[name].units = units
    with pytest.raises(DataError, match=rf"units\.nc: {sentence}.*{units}"):
        read_sweeps([path], Format.CFRADIAL)


def test_ranges_in_kilometres(exported, tmp_path):
    path = tmp_path / "km.nc"
    with edited(exported, path) as file:
        ranges = file.variables["range"]
        ranges[:] = ranges[:] / 1000
        ranges.units = "km"
    (sweep,), (origin,) = (read_sweeps([p], Format.CFRADIAL) for p in (path, exported))
    np.testing.assert_allclose(sweep.range, origin.range, atol=0.1)


def test_a_truncated_file_is_an_error(exported, tmp_path):
    content = exported.read_bytes()
    path = tmp_path / "cut.nc"
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match=r"cut\.nc: damaged or truncated"):
        read_header(path)


@pytest.fixture
def renamed(exported, tmp_path):
    """The volume with moments named only by standard_name, and no echo as fill value."""
    path = tmp_path / "renamed.nc"
    with edited(exported, path) as file:
        file.set_auto_mask(False)
        file.set_auto_scale(False)
        moments = {
            "DBZH": "equivalent_reflectivity_factor",
            "RHOHV": "cross_correlation_ratio_hv",
        }
        for name in [n for n, v in file.variables.items() if v.ndim == 2 or n in moments]:
            variable = file.variables[name]
            if "standard_name" in variable.ncattrs():
                variable.delncattr("standard_name")
        for name, standard_name in moments.items():
            if name in file.variables:
                variable = file.variables[name]
                variable.standard_name = standard_name
                if name == "DBZH":
                    values = variable[:]
                    values[values == variable.getncattr("_Undetect")] = variable._FillValue
                    variable[:] = values
                    variable.delncattr("_Undetect")
                file.renameVariable(name, f"field_{len(name)}")
    return path


@pytest.mark.slow
def test_moments_may_be_named_by_standard_name_only(renamed, exported):
    (sweep,), (origin,) = (read_sweeps([p], Format.CFRADIAL) for p in (renamed, exported))
    echo = np.isfinite(origin.dbz)
    np.testing.assert_array_equal(sweep.dbz[echo], origin.dbz[echo])
    assert np.isnan(sweep.dbz[~echo]).all()


@pytest.mark.slow
@pytest.mark.parametrize(("fill", "missing"), [("auto", 0.0), ("no echo", 0.0), ("missing", 0.5)])
def test_fill_is_no_echo_unless_set_to_missing(renamed, fill, missing):
    header = read_header(renamed)
    scans, _ = group_scans([header])
    settings = IngestSettings.of(fill=fill, size=64, spacing=4000.0)
    result = map_scan(scans[0], target_grid(header, settings), settings)
    share = result.coverage.shares()[0] / 100
    assert share == 0.0 if missing == 0.0 else share > missing


READS = """
import sys
from pathlib import Path
from nowcast.radar.reader import read_header, read_sweeps
for path in map(Path, sys.argv[1:]):
    read_sweeps([path], read_header(path).format)
print("netCDF4" in sys.modules)
"""


@pytest.mark.slow
def test_volumes_are_read_without_netcdf4(exported, polar, tmp_path):
    """netCDF4 crashes if the garbage collector closes a file while another thread reads."""
    second = write_cfradial(tmp_path / "second.nc", polar / NAME, version=2)
    command = [sys.executable, "-W", "ignore", "-c", READS, exported, second]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"
