"""One scan to one map: the strongest echo has the place and the value that xradar gives."""

from __future__ import annotations

import gzip
import warnings

import numpy as np
import pyproj
import pytest
import xarray as xr

from daskdl.errors import DataError
from nowcast.ingest.rain_map import Failure, combine, map_scan, try_scan
from nowcast.ingest.scan import group_scans
from nowcast.ingest.settings import IngestSettings
from nowcast.radar.header import Site
from nowcast.radar.reader import read_header
from nowcast.rain.grid import Grid
from tests.nowcast.radar import composite_files
from tests.nowcast.radar.composite_files import NX, NY, write_geotiff
from tests.nowcast.radar.odim_file import write_sweep

FILES = {
    "KLBB20160601_150025_V06": ("nexradlevel2", None),
    "KLIX20050828_180149.gz": ("nexradlevel2", Site(30.3367, -89.8256, 7.0)),
    "T_PAGZ35_C_ENMI_20170421090837.hdf": ("odim", None),
    "T_PAZE63_C_LFPW_20230420065446.h5": ("odim", None),
    "T_PAZE63_C_LFPW_20230420065946.h5": ("odim", None),
    "SUR210819000227.RAWKPJV": ("iris", None),
    "2013051000000600dBZ.vol": ("rainbow", None),
}
AS_MEASURED = IngestSettings.of(clean="none", hail_cap=None)


def xradar_gates(path, engine: str, site: Site | None, tmp_path) -> tuple[np.ndarray, ...]:
    """Return longitude, latitude and dBZ of the lowest sweep's gates as xradar reads them."""
    if path.suffix == ".gz":
        unpacked = tmp_path / path.stem
        unpacked.write_bytes(gzip.decompress(path.read_bytes()))
        path = unpacked
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import xradar  # noqa: F401

        with xr.open_dataset(str(path), engine=engine, group="sweep_0") as sweep:
            sweep = sweep.load()
        if site is not None:
            sweep = sweep.assign_coords(
                latitude=site.latitude, longitude=site.longitude, altitude=site.altitude
            )
        sweep = sweep.xradar.georeference()
    crs = pyproj.CRS.from_cf(sweep["crs_wkt"].attrs)
    to_geographic = pyproj.Transformer.from_crs(crs, "EPSG:4326", always_xy=True)
    placed = sweep.transpose("azimuth", "range", ...)
    longitude, latitude = to_geographic.transform(placed["x"].values, placed["y"].values)
    return longitude, latitude, placed["DBZH"].values


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_the_strongest_echo_has_the_place_and_value_of_xradar(polar, tmp_path, name):
    engine, site = FILES[name]
    longitude, latitude, dbz = xradar_gates(polar / name, engine, site, tmp_path)
    strongest = np.unravel_index(np.nanargmax(dbz), dbz.shape)
    header = read_header(polar / name)
    (scan,), _ = group_scans([header])
    settings = AS_MEASURED.model_copy(update={"site": site})
    place = site or header.site
    relation = settings.relation

    # One gate a cell: exactly the value of the gate, in the middle of a grid around it.
    _, _, distance = pyproj.Geod(ellps="WGS84").inv(
        place.longitude, place.latitude, longitude[strongest], latitude[strongest]
    )
    fine = Grid.around(
        place.latitude,
        place.longitude,
        size=(21, 21),
        spacing=min(40.0, distance * np.radians(360 / len(dbz)) / 4),
        centre=(latitude[strongest], longitude[strongest]),
    )
    rain = map_scan(scan, fine, settings).rain
    assert rain[10, 10] == np.nanmax(rain)
    assert rain[10, 10] == pytest.approx(relation.rain_rate(dbz[strongest]), rel=1e-5)

    # Many gates a cell: the mean of the rates of xradar's gates in it.
    coarse = Grid.around(place.latitude, place.longitude, size=(240, 240), spacing=2000.0)
    rain = map_scan(scan, coarse, settings).rain
    project = pyproj.Transformer.from_crs("EPSG:4326", coarse.crs, always_xy=True)
    x, y = project.transform(longitude, latitude)
    column = np.floor((x - coarse.x0) / 2000 + 0.5).astype(int)
    row = np.floor((y - coarse.y0) / 2000 + 0.5).astype(int)
    seen = (row >= 0) & (row < 240) & (column >= 0) & (column < 240) & ~np.isnan(dbz)
    cell = row[seen] * 240 + column[seen]
    total = np.bincount(cell, relation.rain_rate(dbz[seen]), minlength=240 * 240)
    count = np.bincount(cell, minlength=240 * 240)
    with_gates = (count > 0) & ~np.isnan(rain.reshape(-1))
    expected = total[with_gates] / count[with_gates]
    mapped = rain.reshape(-1)[with_gates]
    # A gate on the border of two cells may fall into either.
    assert np.isclose(mapped, expected, rtol=0.05, atol=0.05).mean() > 0.99
    assert expected[np.argmax(mapped)] > 0.9 * expected.max()


def test_nodata_of_the_french_radar_stays_missing(polar):
    (scan,), _ = group_scans([read_header(polar / "T_PAZE63_C_LFPW_20230420065446.h5")])
    site = scan.headers[0].site
    grid = Grid.around(site.latitude, site.longitude, size=(200, 200), spacing=1000.0)
    rain = map_scan(scan, grid, AS_MEASURED).rain
    assert 0.01 < np.isnan(rain).mean() < 0.2


def test_false_echo_is_no_rain_by_default(helchteren):
    paths = [helchteren[0], helchteren[0].with_name(helchteren[0].name.replace("dbzh", "rhohv"))]
    (scan,), _ = group_scans([read_header(path) for path in paths])
    site = scan.headers[0].site
    grid = Grid.around(site.latitude, site.longitude, size=(100, 100), spacing=2000.0)
    cleaned = map_scan(scan, grid, IngestSettings()).rain
    uncleaned = map_scan(scan, grid, IngestSettings.of(clean="none")).rain
    assert np.nansum(cleaned) < 0.9 * np.nansum(uncleaned)
    assert np.array_equal(np.isnan(cleaned), np.isnan(uncleaned))
    # Rain around a removed gate replaces it.
    assert np.mean(cleaned <= uncleaned + 1e-5) > 0.99


def test_several_elevations_are_combined(tmp_path):
    path = write_sweep(tmp_path / "a.h5", elevations=(0.5, 1.5, 4.0))
    (scan,), _ = group_scans([read_header(path)])
    grid = Grid.around(51.0, 5.0, size=(40, 40), spacing=1000.0)

    def rain(**settings):
        return map_scan(scan, grid, AS_MEASURED.model_copy(update=settings)).rain

    relation = AS_MEASURED.relation
    assert np.nanmax(rain()) == pytest.approx(relation.rain_rate(np.array(30.0)), rel=1e-5)
    assert np.nanmax(rain(sweeps=3)) == np.nanmax(rain())
    assert np.nanmax(rain(sweeps=3, combine="max")) == pytest.approx(
        relation.rain_rate(np.array(32.0)), rel=1e-5
    )


def test_lowest_fills_gaps_from_above_and_max_takes_the_strongest():
    low = np.array([np.nan, 1.0, 2.0, np.nan], np.float32)
    high = np.array([5.0, 3.0, np.nan, np.nan], np.float32)
    np.testing.assert_array_equal(combine([low, high], "lowest"), [5, 1, 2, np.nan])
    np.testing.assert_array_equal(combine([low, high], "max"), [5, 3, 2, np.nan])


def test_a_composite_on_another_grid_is_a_failure(radar_dir):
    path = next((radar_dir / "knmi").rglob("*.h5"))
    (scan,), _ = group_scans([read_header(path)])
    grid = Grid.around(52.0, 5.0, size=(765, 700), spacing=1000.0)
    result = try_scan(scan, grid, IngestSettings())
    assert isinstance(result, Failure)
    assert result.name == str(path)
    assert result.reason.startswith("expected the grid of 765 x 700 cells")


@pytest.mark.parametrize(
    ("reflectivity", "dry", "fill", "missing"),
    [
        (True, True, "auto", 12),
        (True, False, "auto", 0),  # no cell is dry: only no number can mean that
        (False, False, "auto", NX * NY - 30),
        (True, True, "no echo", 0),
    ],
)
def test_cells_without_a_number_are_dry_where_a_map_has_no_other_sign_of_it(
    tmp_path, monkeypatch, reflectivity, dry, fill, missing
):
    if not dry:
        wet = np.where(composite_files.rain() > 0, composite_files.rain(), np.nan)
        monkeypatch.setattr(composite_files, "rain", lambda: wet)
    path = write_geotiff(tmp_path / "202406011215-a.tif", reflectivity=reflectivity)
    header = read_header(path)
    (scan,), _ = group_scans([header])
    rain = map_scan(scan, header.grid, IngestSettings.of(fill=fill)).rain
    assert np.isnan(rain).sum() == missing


@pytest.mark.slow
def test_without_a_site_the_option_is_named(polar):
    (scan,), _ = group_scans([read_header(polar / "KLIX20050828_180149.gz")])
    grid = Grid.around(30.0, -89.0, size=(4, 4), spacing=1000.0)
    with pytest.raises(DataError, match=r"KLIX.*give it with --site LAT,LON\[,ALT\]"):
        map_scan(scan, grid, IngestSettings())
