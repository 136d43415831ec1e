"""Volumes of vendors: Sigmet/IRIS, Rainbow 5, and files in the layout of GAMIC."""

from __future__ import annotations

import h5py
import numpy as np
import pytest
import xarray as xr

from daskdl.errors import DataError
from nowcast.ingest.rain_map import read_sweeps as read_scan
from nowcast.ingest.scan import group_scans
from nowcast.ingest.settings import IngestSettings
from nowcast.radar.header import Format
from nowcast.radar.polar import iris
from nowcast.radar.reader import read_header, read_sweeps


@pytest.mark.parametrize(("none", "outside"), [(-32.0, 95.5), (-327.68, 327.67)])
def test_codes_of_one_and_two_bytes(none, outside):
    moment = xr.DataArray([[none, outside, 10.0, -31.5]], name="DBZH")
    dry, missing = iris.classify(moment)
    assert dry.tolist() == [[True, False, False, False]]
    assert missing.tolist() == [[False, True, False, False]]


def test_west_is_negative():
    assert iris._signed(350.0) == -10.0
    assert iris._signed(25.5) == 25.5


NAME = "2013051000000600dBZ.vol"


def test_a_volume_cut_in_its_first_blobs_is_an_error(polar, tmp_path):
    content = (polar / NAME).read_bytes()
    path = tmp_path / "cut.vol"
    path.write_bytes(content[: content.find(b"<BLOB") + 500])
    assert read_header(path).station == "143DEX"
    with pytest.raises(DataError, match=r"cut\.vol: damaged or truncated Rainbow 5 file"):
        read_sweeps([path], Format.RAINBOW)


def test_a_header_without_time_is_an_error(tmp_path):
    path = tmp_path / "a.vol"
    path.write_bytes(b'<volume version="5">\n<scan name="x" date="y">\n</volume>\n<!-- END XML -->')
    with pytest.raises(DataError, match=r"a\.vol: expected the scan's date and time"):
        read_header(path)


RAYS, GATES = 36, 50


def write_gamic(path):
    """Write two sweeps: a block of 30 dBZ in the lower one; the first ray lies across north."""
    angles = [f"{angle}_{edge}" for angle in ("azimuth", "elevation") for edge in ("start", "stop")]
    ray = np.dtype([*((angle, "f8") for angle in angles), ("timestamp", "i8")])
    begin = np.datetime64("2024-06-01T12:00:06", "us").astype(np.int64)
    with h5py.File(path, "w") as file:
        file.create_group("what").attrs.update(object=np.bytes_("PVOL"), sets=2)
        file.create_group("where").attrs.update(lat=50.7, lon=7.1, height=90.0)
        file.create_group("how").attrs["site_name"] = np.bytes_("Bonn")
        for i, elevation in enumerate((1.5, 0.5)):
            scan = file.create_group(f"scan{i}")
            scan.create_group("what").attrs["object"] = np.bytes_("SCAN")
            scan.create_group("how").attrs.update(
                timestamp=np.bytes_(f"2024-06-01T12:00:{6 + 20 * i:02d}.000Z"), elevation=elevation,
                range_step=250.0, range_samples=4, bin_count=GATES, ray_count=RAYS, PRF=600.0,
                nyquist_velocity=10.0,
            )  # fmt: skip
            rays = np.zeros(RAYS, ray)
            rays["azimuth_start"] = (np.arange(RAYS) * 10.0 - 5.0) % 360
            rays["azimuth_stop"] = (np.arange(RAYS) * 10.0 + 5.0) % 360
            rays["elevation_start"] = rays["elevation_stop"] = elevation
            rays["timestamp"] = begin + i * 20_000_000 + np.arange(RAYS)
            scan["ray_header"] = rays
            raw = np.zeros((RAYS, GATES), "u1")
            raw[9:12, 10:30] = 123 if i else 200
            scan["moment_0"] = raw
            scan["moment_0"].attrs.update(
                moment=np.bytes_("Zh"), format=np.bytes_("UV8"),
                dyn_range_min=np.float32(-31.5), dyn_range_max=np.float32(95.5),
            )  # fmt: skip
    return path


@pytest.mark.parametrize("days", [0, 1])
def test_the_times_of_a_gamic_volume_are_compared(tmp_path, days):
    path = write_gamic(tmp_path / "a.mvol")
    with h5py.File(path, "r+") as file:
        file["what"].attrs["date"] = np.bytes_(f"2024-06-0{1 + days}T12:00:00.000Z")
        if days == 0:  # the times of the rays
            for scan in ("scan0", "scan1"):
                rays = file[f"{scan}/ray_header"][:]
                rays["timestamp"] += 7_200_000_000
                file[f"{scan}/ray_header"][:] = rays
    if days:
        with pytest.raises(DataError, match="within 60 minutes of what/date, 2024-06-02T12:00"):
            read_header(path)
    else:
        (scan,), _ = group_scans([read_header(path)])
        with pytest.raises(DataError, match="of the header's time, 2024-06-01T12:00:06, found"):
            read_scan(scan, IngestSettings())


def test_velocity_stands_in_for_coherence(tmp_path):
    path = write_gamic(tmp_path / "a.mvol")
    for number, name in ((1, "Vh"), (2, "SQIh")):
        with h5py.File(path, "r+") as file:
            file.copy("scan1/moment_0", file["scan1"], f"moment_{number}")
            file[f"scan1/moment_{number}"].attrs["moment"] = np.bytes_(name)
        (sweep,) = read_sweeps([path], Format.GAMIC)
        coherent = name == "SQIh"
        assert (sweep.coherence is not None, sweep.velocity is not None) == (coherent, not coherent)


def test_a_gamic_volume(tmp_path):
    header = read_header(write_gamic(tmp_path / "a.mvol"))
    assert header.format is Format.GAMIC
    assert header.station == "Bonn"
    assert header.times == (np.datetime64("2024-06-01T12:00:06"),)
    assert (header.site.latitude, header.site.altitude) == (50.7, 90.0)
    (sweep,) = read_sweeps([tmp_path / "a.mvol"], Format.GAMIC)
    assert sweep.elevation == 0.5
    assert sweep.time == np.datetime64("2024-06-01T12:00:26")
    np.testing.assert_allclose(sweep.range[:2], [500.0, 1500.0])
    np.testing.assert_allclose(sweep.azimuth, np.arange(RAYS) * 10.0)
    assert np.isneginf(sweep.dbz).sum() == sweep.dbz.size - 60
    # Byte 0 is reserved for no echo: -32 + 0.5 * 123.
    np.testing.assert_allclose(sweep.dbz[9:12, 10:30], 29.5, atol=0.01)
