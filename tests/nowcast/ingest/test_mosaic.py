"""Ingest of several radars into one map: simulated radars that look at the same storms."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from daskdl.console import run
from daskdl.errors import DataError, SettingsError
from nowcast.cli import app
from nowcast.ingest import mosaic
from nowcast.ingest.ingest import ingest
from nowcast.rain.grid import Grid
from nowcast.rain.store import open_rain
from nowcast.simulate import Weather, simulate
from nowcast.simulate.scans import row_of_radars
from tests.nowcast.radar.odim_file import write_sweep

SIZE = (340, 200)
BIAS = 3.0


@pytest.fixture(scope="module")
def volumes(tmp_path_factory):
    """Half an hour of two radars 100 km apart, the second 2 minutes late and 3 dB too low."""
    folder = tmp_path_factory.mktemp("volumes")
    for number, radar in enumerate(row_of_radars(2)):
        radar = replace(radar, bias=BIAS / 2 - BIAS * number, elevations=(0.5,), gap=0.0)
        name = f"simulated {'ab'[number]}"
        simulate(folder / name[-1], hours=0.5, step_minutes=5, seed=3, radar=radar, name=name)
    return folder


def read(store, name="rain_rate"):
    with open_rain(store) as dataset:
        return dataset[name].values


def seam(rain) -> float:
    """Mean difference in dB across the line halfway between radars, over the one along it."""
    decibel = 10 * np.log10(np.where(rain > 0.5, rain, np.nan))
    middle = rain.shape[1] // 2
    across = decibel[:, middle] - decibel[:, middle - 1]
    along = np.diff(decibel[:, middle - 1 : middle + 1], axis=2)
    return float(np.nanmean(np.abs(across)) / np.nanmean(np.abs(along)))


def test_no_seam_shows_and_calibrations_are_reported_and_corrected(volumes, tmp_path):
    report = ingest([volumes], tmp_path / "quality.zarr", mosaic="quality", size=SIZE)
    assert (report.written, report.radars) == (6, {"simulated a": 6, "simulated b": 6})
    ((_, _, decibel, cells),) = report.calibration.differences()
    assert decibel == pytest.approx(-BIAS, abs=0.3)
    assert cells > 1000
    assert "--offset 'simulated a=-1.4' --offset 'simulated b=+1.4'" in report.mosaic()[-1]
    ingest([volumes], tmp_path / "nearest.zarr", mosaic="nearest", size=SIZE)
    assert seam(read(tmp_path / "quality.zarr")) <= 1
    assert seam(read(tmp_path / "nearest.zarr")) > 1.3

    offset = {"simulated a": -BIAS / 2, "simulated b": BIAS / 2}
    even = tmp_path / "even.zarr"
    report = ingest([volumes], even, mosaic="quality", size=SIZE, offset=offset)
    assert abs(report.calibration.differences()[0].decibel) < 0.2
    with open_rain(even) as dataset:
        assert dataset["rain_rate"].attrs["mosaic"].startswith("quality; scans within 5 min")
        assert dataset["quality"].dims == ("time", "y", "x")
    with pytest.raises(DataError, match=r"calibration_offset 'simulated a -1.5 dB"):
        ingest([volumes], even, mosaic="quality", size=SIZE)


def test_scans_are_moved_to_the_frames_time(volumes, tmp_path, monkeypatch):
    settings = {"mosaic": "nearest", "size": SIZE, "offset": {"simulated b": BIAS / 2}}
    ingest([volumes / "b"], tmp_path / "moved.zarr", **settings)
    monkeypatch.setattr(mosaic, "SAME_TIME", np.inf)
    ingest([volumes / "b"], tmp_path / "still.zarr", **settings)
    with open_rain(tmp_path / "moved.zarr") as dataset:
        grid = Grid.from_dataset(dataset)
    north = row_of_radars(2)[1].north
    truth = [
        Weather(3, hours=0.5).rain_field(300.0 * step, grid.x[None], grid.y[:, None] + north)
        for step in range(6)
    ]
    error = {}
    for name in ("moved", "still"):
        rain = read(tmp_path / f"{name}.zarr")
        wet = np.isfinite(rain) & (np.array(truth) > 0.5)
        error[name] = np.abs(rain - truth)[wet].mean()
    assert error["moved"] < 0.85 * error["still"]


def test_the_area_of_a_lost_radar_is_missing_and_a_restart_continues(volumes, tmp_path):
    folder = tmp_path / "volumes"
    shutil.copytree(volumes, folder)
    lost = sorted((folder / "b").iterdir())[3]
    lost.write_bytes(lost.read_bytes()[:3000])
    lines = {"mosaic": "quality", "size": SIZE, "within": "2min"}
    report = ingest([folder], tmp_path / "whole.zarr", **lines)
    assert (report.written, len(report.failed)) == (6, 1)
    assert report.mosaic()[0] == "simulated b is missing in 1 of 6 frames"
    rain, quality = (read(tmp_path / "whole.zarr", name) for name in ("rain_rate", "quality"))
    assert np.isnan(rain[3, 300]).all()
    assert (quality[3, 300] == 0).all()
    assert np.isfinite(rain[4, 300, 100])
    assert np.isfinite(rain[3, 60, 60])

    # The second radar comes late: frames without it are made anew, also from scans at an address.
    first = [*sorted((folder / "a").iterdir())[:4], *sorted((folder / "b").iterdir())[:2]]
    for store, at in ((tmp_path / "far.zarr", Path.as_uri), (tmp_path / "parts.zarr", str)):
        ingest([at(path) for path in first], store, **lines)
        report = ingest([at(folder)], store, **lines)
        assert (report.written, report.anew) == (2, 1)
        for name, values in (("rain_rate", rain), ("quality", quality)):
            np.testing.assert_array_equal(read(store, name), values)
        assert read(store, "radar_count").tolist() == [2, 2, 2, 1, 2, 2]
    assert report.existing == 3
    # A day without one of the radars goes into the same map.
    report = ingest([folder / "a"], tmp_path / "parts.zarr", **lines)
    assert (report.anew, report.existing) == (0, 6)


def test_attenuation_lowers_the_weight(volumes, tmp_path):
    scan = sorted((volumes / "a").iterdir())[:1]
    for name, band in (("clear", None), ("weakened", "C")):
        ingest(scan, tmp_path / name, mosaic="quality", size=SIZE, attenuation=band)
    clear, weakened = (read(tmp_path / name, "quality") for name in ("clear", "weakened"))
    assert (weakened <= clear * 1.0001).all()
    assert (weakened < 0.95 * clear).any()
    assert (weakened > 0.999 * clear).mean() > 0.2


def test_settings_that_make_no_mosaic_are_refused(tmp_path, radar_dir):
    scan = write_sweep(tmp_path / "a.h5")
    with pytest.raises(SettingsError, match="expected no site for a mosaic"):
        ingest([scan], tmp_path / "x.zarr", mosaic="quality", site="50,5")
    with pytest.raises(SettingsError, match="a radar's name and decibels such as behel"):
        ingest([scan], tmp_path / "x.zarr", offset=["-1.5"])
    with pytest.raises(DataError, match="at least 8 cells along each side"):
        ingest([scan], tmp_path / "x.zarr", mosaic="quality", size=4)
    with pytest.raises(DataError, match="expected a radar's volume for a mosaic, found a composi"):
        ingest(
            [radar_dir / "mch" / "20150515" / "mch_20150515_154500.nc"],
            tmp_path / "x.zarr",
            mosaic="quality",
        )
    assert not (tmp_path / "x.zarr").exists()
    ingest([scan], tmp_path / "one.zarr", size=40)
    with pytest.raises(DataError, match=r"made with mosaic None, this run has .nearest"):
        ingest([scan], tmp_path / "one.zarr", size=40, mosaic="nearest")


def test_by_command_line(tmp_path, capsys):
    scans, out = tmp_path / "scans", tmp_path / "rain.zarr"
    made = ["simulate", "--out", scans, "--scans", "--radars", 2, "--hours", 0.2, "--step", 5]
    assert run(app, [str(word) for word in made]) == 0
    put = ["ingest", scans / "radar1", scans / "radar2", "--mosaic", "maximum", "--out", out]
    options = ["--size", 64, "--spacing", 4000, "--offset", "Simulated radar 1=0.5", "--json"]
    assert run(app, [str(word) for word in put + options]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["radars"] == {"Simulated radar 1": 2, "Simulated radar 2": 2}
    assert "2 frames written" in captured.err
