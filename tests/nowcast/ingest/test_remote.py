"""Scans from web servers, buckets and archives: listed by time, fetched whole, read once."""

from __future__ import annotations

import functools
import threading
import zipfile
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import fsspec
import numpy as np
import pytest

from daskdl.console import run
from daskdl.errors import DataError, SettingsError
from nowcast.cli import app
from nowcast.ingest import remote
from nowcast.ingest.ingest import ingest
from nowcast.ingest.name_times import name_time, spanned
from nowcast.ingest.rain_map import Failure
from nowcast.ingest.remote import Access, RemoteFile, batches, fetch, listed
from nowcast.ingest.report import IngestReport
from nowcast.rain.store import open_rain
from nowcast.simulate import Radar, simulate


@pytest.fixture(scope="module")
def scans(tmp_path_factory):
    """A folder of four simulated volumes, ten minutes apart."""
    folder = tmp_path_factory.mktemp("archive") / "scans"
    radar = Radar(rays=90, gates=60, gate_length=1000.0, elevations=(0.5,), blocked=())
    simulate(folder, hours=0.7, step_minutes=10, radar=radar)
    return folder


class Unreliable(SimpleHTTPRequestHandler):
    """Serve files; the first answer for a file in ``failing`` breaks off in the middle."""

    failing: ClassVar[set[str]] = set()

    def copyfile(self, source, outputfile) -> None:
        if self.path in self.failing:
            self.failing.discard(self.path)
            outputfile.write(source.read(1000))
            self.close_connection = True
        else:
            super().copyfile(source, outputfile)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(scans):
    pytest.importorskip("aiohttp")
    handler = functools.partial(Unreliable, directory=str(scans))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}/"
        http.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("name", "time"),
    [
        ("KTLX20260520_000332_V06", "2026-05-20T00:03:32"),
        ("RAD_NL25_RAP_5min_202605200010.h5", "2026-05-20T00:10"),
        ("MRMS_PrecipRate_00.00_20260520-000200.grib2.gz", "2026-05-20T00:02"),
        ("T_PAAH21_C_EUOC_20260520001500123.hdf", "2026-05-20T00:15"),
        ("raa01-rw_10000-2605200050-dwd---bin", "2026-05-20T00:50"),
        ("rzc261400055vl.001.h5", "2026-05-20T00:55"),
        ("raa00-dx_10132-latest.bin", None),
        ("99999999999999.h5", None),
    ],
)
def test_times_are_read_from_names(name, time):
    expected = None if time is None else np.datetime64(time, "s")
    assert name_time(f"s3://b/2024/01/01/{name}") == expected


def test_fields_of_times_are_filled_in_and_others_refused():
    times = np.datetime64("2025-12-31T23:30", "s"), np.datetime64("2026-01-01T00:10", "s")
    assert list(spanned("s3://b/%Y%j/%H/*", *times)) == [
        "s3://b/2025365/23/*",
        "s3://b/2026001/00/*",
    ]
    assert list(spanned("https://b/a%20b/", None, None)) == ["https://b/a%20b/"]
    with pytest.raises(SettingsError, match=r"give the times with --from and --to"):
        list(spanned("s3://b/%Y/*", None, None))
    with pytest.raises(SettingsError, match="found %M"):
        list(spanned("s3://b/%Y%M/*", *times))


def test_batches_do_not_split_hours():
    start = np.datetime64("2026-05-20T00:00", "s")
    files = [RemoteFile(f"s3://b/{i}", 1, start + np.timedelta64(10 * i, "s")) for i in range(900)]
    parts = list(batches(files))
    assert [file for part in parts for file in part] == files
    assert len(parts) > 1
    hours = [{str(file.time + np.timedelta64(30, "s"))[:13] for file in part} for part in parts]
    assert all(not one & other for one, other in pairwise(hours))


@pytest.mark.slow
def test_a_folder_of_a_web_server_gives_the_store_of_its_files(server, scans, tmp_path):
    ingest([scans], tmp_path / "local.zarr")
    names = sorted(path.name for path in scans.glob("*.h5"))
    Unreliable.failing = {f"/{names[1]}"}
    report = ingest([server], tmp_path / "rain.zarr")
    assert (report.written, report.failed) == (len(names), [])
    with open_rain(tmp_path / "rain.zarr") as ours, open_rain(tmp_path / "local.zarr") as local:
        np.testing.assert_array_equal(ours["rain_rate"].values, local["rain_rate"].values)
    again = ingest([server], tmp_path / "rain.zarr")
    assert (again.written, again.existing) == (0, len(names))
    assert {path.name for path in tmp_path.iterdir()} == {
        "local.zarr", "rain.zarr", ".rain.zarr.read"
    }  # fmt: skip


def test_files_are_chosen_by_times_in_names(server, scans):
    every = listed([server], Access())
    assert [file.time for file in every] == sorted(file.time for file in every)
    few = listed([f"{server}*.h5"], Access(first=every[1].time, last=every[2].time))
    assert [file.url for file in few] == [file.url for file in every[1:3]]
    late = np.datetime64("2090-01-01", "s")
    with pytest.raises(DataError, match="expected files of the wanted times, found none"):
        listed([server], Access(first=late))


def test_a_broken_transfer_is_repeated_and_a_missing_file_is_named(
    server, scans, tmp_path, monkeypatch
):
    monkeypatch.setattr(remote, "PAUSE", 0.01)
    name = min(path.name for path in scans.glob("*.h5"))
    Unreliable.failing = {f"/{name}"}
    copy = fetch(RemoteFile(server + name), tmp_path, Access())
    assert isinstance(copy, Path)
    assert copy.read_bytes() == (scans / name).read_bytes()
    short = fetch(RemoteFile(server + name, size=5), tmp_path / "other", Access())
    assert isinstance(short, Failure)
    assert "expected 5 bytes, found" in short.reason
    gone = fetch(RemoteFile(server + "gone.h5"), tmp_path, Access())
    assert isinstance(gone, Failure)
    assert gone.name == server + "gone.h5"
    assert "cannot be fetched (FileNotFoundError" in gone.reason
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [copy]


def test_an_archive_is_a_folder_and_its_damaged_file_is_tried_again(scans, tmp_path):
    with zipfile.ZipFile(tmp_path / "day.zip", "w") as archive:
        for path in scans.glob("*.h5"):
            archive.write(path, f"a/{path.name}")
        archive.writestr("a/radar, north.h5", "no HDF5")
    for written in (len(list(scans.glob("*.h5"))), 0):
        report = ingest([tmp_path / "day.zip"], tmp_path / "rain.zarr")
        assert (report.written, len(report.failed)) == (written, 1)


def test_each_file_of_a_scan_that_failed_is_known():
    report = IngestReport("rain.zarr")
    report.addresses = {"/copy/1": "s3://b/north, 1.h5", "/copy/2": "s3://b/north, 2.h5"}
    report.fail(Failure("/copy/1, /copy/2", "found no reflectivity", files=("/copy/1", "/copy/2")))
    report.fail(Failure("/scans/a, b.h5", "found no HDF5"))
    assert set(report.unread) == {"s3://b/north, 1.h5", "s3://b/north, 2.h5", "/scans/a, b.h5"}


@pytest.mark.slow
def test_a_bucket_is_listed_by_day_and_holds_a_store(scans, tmp_path, monkeypatch, capsys):
    server = pytest.importorskip("moto.server")
    pytest.importorskip("s3fs")
    import s3fs

    s3 = server.ThreadedMotoServer(port=0, verbose=False)
    s3.start()
    try:
        host, port = s3.get_host_and_port()
        options = {"key": "k", "secret": "s", "endpoint_url": f"http://{host}:{port}"}
        system = s3fs.S3FileSystem(**options, skip_instance_cache=True)
        paths = sorted(scans.glob("*.h5"))
        day = str(name_time(paths[0].name).astype("datetime64[D]")).replace("-", "/")
        system.mkdir("radar")
        for number, path in enumerate(paths):
            system.put_file(str(path), f"radar/{day}/{path.name}")
            # A file that another program adds after a listing is in the next one, as a watch needs.
            assert len(listed([f"s3://radar/{day}/"], Access(options))) == number + 1
        times = name_time(paths[0].name), name_time(paths[-1].name)
        access = Access(options, *times)
        report = ingest(["s3://radar/%Y/%m/%d/*"], tmp_path / "rain.zarr", access=access)
        assert report.written == len(paths)
        # Commands read a store that was copied to the bucket, and write none there.
        monkeypatch.setitem(fsspec.config.conf, "s3", options)
        system.put(str(tmp_path / "rain.zarr"), "radar/rain.zarr", recursive=True)
        with open_rain("s3://radar/rain.zarr") as there, open_rain(tmp_path / "rain.zarr") as here:
            assert there.identical(here)
        assert run(app, ["info", "s3://radar/rain.zarr"], install="") == 0
        assert "rain store" in capsys.readouterr().out
        command = ["ingest", str(scans), "--out", "s3://radar/more.zarr"]
        assert run(app, command, install="") == 2
        assert "s3://radar/more.zarr: expected a path on a disk" in capsys.readouterr().err
        with pytest.raises(DataError, match=r"none\.zarr: expected a rain store, found n"):
            open_rain("s3://radar/none.zarr")
        with pytest.raises(DataError, match="s3://other/x/: expected files, found none"):
            listed(["s3://other/x/"], Access(options))
    finally:
        s3.stop()
