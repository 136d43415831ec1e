"""A watch ingests each scan once, forecasts from the newest, survives a kill, and has metrics."""

from __future__ import annotations

import json
import os
import shutil
import urllib.error
import urllib.request
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import h5py
import numpy as np
import pytest

from daskdl.errors import SettingsError
from nowcast.forecasters import forecaster
from nowcast.forecasters.file import open_forecast
from nowcast.ingest.settings import IngestSettings
from nowcast.live import health, products, status
from nowcast.live import watch as module
from nowcast.live.health import served
from nowcast.live.office import Office
from nowcast.live.recalibration import EDGES, NAME, Recalibration, before
from nowcast.live.watch import Watch
from nowcast.rain.store import open_rain
from nowcast.simulate import simulate
from nowcast.simulate.radar import Radar
from nowcast.simulate.scans import row_of_radars
from tests.disks import fill, small_disk


@pytest.fixture(scope="module")
def scans(tmp_path_factory):
    radar = Radar(gates=60, elevations=(0.5,))
    return simulate(tmp_path_factory.mktemp("scans"), hours=1, step_minutes=10, radar=radar)


@pytest.fixture
def watch(tmp_path):
    (tmp_path / "in").mkdir()
    return again(tmp_path)


def again(folder: Path, **settings) -> Watch:
    grid = IngestSettings(size=(32, 32), spacing=2000.0)
    paths = {"source": str(folder / "in"), "out": folder / "out"}
    return Watch(Office(**paths, method="extrapolation", ingest=grid, **settings))


def arrive(watch: Watch, *paths: Path) -> None:
    """Copy files into the source as if they had been there for a minute."""
    for path in paths:
        copy = Path(watch.source, path.name)
        shutil.copy(path, copy)
        os.utime(copy, (1e9, 1e9))


def read(watch: Watch, name: str):
    return json.loads((watch.out / name).read_text())


def times(watch: Watch) -> int:
    with open_rain(watch.store) as rain:
        return rain.sizes["time"]


def test_scans_arrive_out_of_order_twice_and_with_a_gap(watch, scans):
    arrive(watch, *scans[:3])
    assert watch.cycle()
    assert not watch.cycle()  # nothing new
    arrive(watch, scans[4])
    assert watch.cycle()
    latest = read(watch, "latest.json")
    assert latest["start"] == "2020-06-01T00:40Z"
    assert latest["flags"] == ["gap 1 scan", "late"]
    with open_forecast(watch.out / latest["forecast"]) as forecast:
        assert forecast.sizes["lead_time"] == 6
    arrive(watch, scans[3])  # late: it fills the gap, and no forecast is made
    assert not watch.cycle()
    shutil.copy(scans[4], Path(watch.source, "again.h5"))
    os.utime(Path(watch.source, "again.h5"), (1e9, 1e9))
    assert not watch.cycle()
    assert times(watch) == 5
    status = read(watch, "status.json")
    assert [status[name] for name in ("scans", "forecasts", "repeated")] == [5, 2, 1]


def test_a_scan_from_a_wrong_clock_does_not_block_others(tmp_path, scans):
    """The year is 2099: no forecast starts there, and the age of frames counts from other scans."""
    (tmp_path / "in").mkdir()
    strange = tmp_path / "radar_209901010000.h5"
    shutil.copy(scans[0], strange)
    with h5py.File(strange, "r+") as file:
        groups = [file["what"], *(part["what"] for name, part in file.items() if "data" in name)]
        for group in groups:
            for name in {"date", "startdate", "enddate"} & group.attrs.keys():
                group.attrs[name] = np.bytes_("20990101")
    watch = again(tmp_path, keep=20)
    arrive(watch, strange, scans[0])
    for scan in scans[1:]:
        arrive(watch, scan)
        assert watch.cycle()
    assert read(watch, "latest.json")["start"] == "2020-06-01T00:50Z"
    with open_rain(watch.store) as rain:
        assert rain["time"].values.astype("M8[m]").astype(str).tolist() == [
            "2020-06-01T00:30", "2020-06-01T00:40", "2020-06-01T00:50", "2099-01-01T00:00",
        ]  # fmt: skip


def test_a_file_is_read_when_it_is_whole(watch, scans):
    arrive(watch, *scans[:2])
    watch.cycle()
    whole, path = scans[2].read_bytes(), Path(watch.source, scans[2].name)
    path.write_bytes(whole[:2000])  # being written
    assert not watch.cycle()
    assert not watch.tries
    path.write_bytes(whole)
    assert not watch.cycle()  # grown since the last look
    assert watch.cycle()


def test_a_damaged_file_is_named_and_skipped(watch, scans):
    arrive(watch, *scans[:2])
    damaged = Path(watch.source, "damaged.h5")
    damaged.write_bytes(scans[2].read_bytes()[:3000])
    os.utime(damaged, (1e9, 1e9))
    watch.cycle()
    for _ in range(module.TRIES - 1):
        assert not read(watch, "status.json")["damaged"]
        watch.cycle()
    assert list(read(watch, "status.json")["damaged"]) == [str(damaged)]
    assert read(watch, "status.json")["last_error"].count(str(damaged)) == 1
    assert times(watch) == 2
    assert not watch.look()
    shutil.copy(scans[2], damaged)  # whole at last
    watch.look()
    assert watch.cycle()
    assert read(watch, "status.json")["damaged"] == {}


def test_a_watch_continues_after_a_kill(watch, scans, tmp_path, monkeypatch):
    arrive(watch, *scans[:3])
    with monkeypatch.context() as broken:
        broken.setattr(module.status, "write", lambda *_: (_ for _ in ()).throw(SystemExit))
        with pytest.raises(SystemExit):
            watch.cycle()  # after the forecast's file, before latest.json
    (watch.forecasts / ".20200601T0020Z.nc.1.partial").write_bytes(b"half")
    (watch.out / ".status.json.1.partial").write_bytes(b"half")
    following = again(tmp_path)
    assert not list(watch.out.glob(".status*"))
    assert following.cycle()
    assert [path.name for path in following.forecasts.iterdir()] == ["20200601T0020Z.nc"]
    assert times(following) == 3


def test_extrapolation_replaces_a_method_that_fails(watch, scans):
    class Broken:
        n_in, least, baseline = 3, 2, 10.0

        def forecast(self, *_, **__):
            raise ValueError("broken")

    watch.method, watch.forecaster = "model", Broken()
    arrive(watch, *scans[:3])
    assert watch.cycle()
    latest = read(watch, "latest.json")
    assert latest["method"] == "extrapolation"
    assert "model failed" in latest["flags"]


def test_adopted_curves_change_issued_probabilities(watch, scans):
    watch.forecaster = forecaster("sprog")
    curve = np.linspace(0.3, 1, len(EDGES))
    watch.recalibration = Recalibration([10.0], [1.0], [[curve.tolist()]])
    arrive(watch, *scans[:3])
    assert watch.cycle()
    with open_forecast(watch.out / read(watch, "latest.json")["forecast"]) as forecast:
        issued, first = (one[NAME].values for one in (forecast, before(forecast)))
    known = np.isfinite(first)
    np.testing.assert_allclose(issued[known], np.interp(first, EDGES, curve)[known], atol=1e-5)
    assert np.nanmin(issued) >= 0.3 > np.nanmin(first)
    watch._recalibrate()  # nothing was verified: the curves are dropped
    assert watch.recalibration is None
    assert "expected 8 blocks, found 0" in watch.status["recalibration"]["told"]


@pytest.mark.slow
def test_store_and_forecasts_are_bounded(tmp_path, scans):
    (tmp_path / "in").mkdir()
    half = 20
    needs = {"cog": "rasterio", "grib": "eccodes", "pictures": "PIL", "cells": "scipy"}
    also = [name for name, module in needs.items() if find_spec(module) is not None]
    watch = again(tmp_path, keep=half, keep_forecasts=half, also=also)
    for scan in scans:
        arrive(watch, scan)
        watch.cycle()
    assert times(watch) == 3
    assert len(list(watch.forecasts.iterdir())) == 3
    starts = sorted(path.stem for path in watch.forecasts.iterdir())
    for name in also:
        assert sorted({path.name[:14] for path in (watch.out / name).iterdir()}) == starts
    following = again(tmp_path, keep=half)  # old files of the source stay out
    assert not following.cycle()
    assert times(following) == 3


def test_a_full_disk_is_reported_and_nothing_written(tmp_path, scans):
    (tmp_path / "in").mkdir()
    with small_disk(tmp_path / "out", "48m") as disk:
        watch = again(tmp_path)
        arrive(watch, *scans[:3])
        fill(disk)
        os.truncate(disk / "of another", (disk / "of another").stat().st_size - 2**20)
        assert not watch.cycle()
        assert {path.name for path in disk.iterdir()} == {"forecasts", "of another", "status.json"}
        assert (
            "expected 34 MB free for the next scan and forecast, found 1 MB"
            in (read(watch, "status.json")["failing"])
        )
        (disk / "of another").unlink()
        assert watch.cycle()
        assert read(watch, "status.json")["failing"] == ""
        assert times(watch) == 3


@pytest.mark.slow
def test_counts_survive_a_kill_at_any_write(tmp_path, scans, monkeypatch):
    """The last cycle takes a scan, its copy and a new one, and removes old frames."""

    def killed_at(write):
        folder = tmp_path / str(write)
        (folder / "in").mkdir(parents=True)
        watch = again(folder, keep=20)
        arrive(watch, *scans[:3])
        watch.cycle()
        arrive(watch, scans[4])
        shutil.copy(scans[2], Path(watch.source, "again.h5"))
        os.utime(Path(watch.source, "again.h5"), (1e9, 1e9))
        writes = 0

        def count(do, *arguments, **others):
            nonlocal writes
            writes += 1
            if writes == write:
                raise SystemExit
            return do(*arguments, **others)

        with monkeypatch.context() as broken:
            for place, name in (
                (status, "write"), (module, "ingest"), (module, "predict_to"),
                (products, "keep_frames"),
            ):  # fmt: skip
                broken.setattr(place, name, partial(count, getattr(place, name)))
            if write:
                with pytest.raises(SystemExit):
                    watch.cycle()
                watch = again(folder, keep=20)
            watch.cycle()
        return {name: read(watch, "status.json")[name] for name in status.COUNTS}, writes

    whole, writes = killed_at(0)
    assert whole == {"scans": 4, "repeated": 1, "late": 2, "forecasts": 2, "fallbacks": 0}
    assert writes == 7
    # Before the first write nothing was begun: then the copy came between two watches.
    for write in range(2, writes + 1):
        assert killed_at(write)[0] == whole, write


@pytest.mark.slow
def test_a_late_radar_renews_its_frame_of_a_mosaic(tmp_path):
    (tmp_path / "in").mkdir()
    grid = IngestSettings(size=(32, 32), spacing=8000.0, mosaic="quality")
    paths = {"source": str(tmp_path / "in"), "out": tmp_path / "out"}
    watch = Watch(Office(**paths, method="persistence", ingest=grid))
    first, second = (
        simulate(tmp_path / name, hours=0.5, radar=replace(radar, elevations=(0.5,)), name=name)
        for name, radar in zip("ab", row_of_radars(2), strict=True)
    )
    for counts, files in (([2, 1, 2], [*first, *second[::2]]), ([2, 2, 2], second[1:2])):
        arrive(watch, *files)
        watch.cycle()
        with open_rain(watch.store) as rain:
            assert rain["radar_count"].values.tolist() == counts
    assert read(watch, "status.json")["repeated"] == 0


def fetch(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
        return answer.read().decode()


def test_health_and_metrics(monkeypatch):
    status = {"scans": 7, "damaged": {"a.h5": "no"}, "failing": ""}
    with served(status, 0) as port:
        assert "nowcast_scans_total 7\n" in fetch(port, "/metrics")
        assert "nowcast_damaged_files 1\n" in fetch(port, "/metrics")
        assert "last cycle 0 s ago" in fetch(port, "/healthz")
        with pytest.raises(SettingsError, match="free port"), served({}, port):
            pass
        status["failing"] = "out: expected 34 MB free, found 1 MB"
        with pytest.raises(urllib.error.HTTPError, match="503") as refused:
            fetch(port, "/healthz")
        assert refused.value.read() == b"last cycle 0 s ago; out: expected 34 MB free, found 1 MB\n"
        refused.value.close()
        status["failing"] = ""
        monkeypatch.setattr(health, "SILENT", -1.0)
        with pytest.raises(urllib.error.HTTPError, match="503") as refused:
            fetch(port, "/healthz")
        refused.value.close()
