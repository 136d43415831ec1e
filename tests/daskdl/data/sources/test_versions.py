"""A file that was replaced by another is noticed where it is read, and at resume."""

from __future__ import annotations

import io
import os
import tarfile
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pandas as pd
import pytest
import xarray as xr
import zarr

from daskdl.data import SampleSet
from daskdl.errors import DataError, TrainingError
from daskdl.nn import Linear, MSELoss
from daskdl.optim import SGD
from daskdl.train import Callback, Trainer


def parquet(path, value, rows=8):
    frame = pd.DataFrame({"a": np.full(rows, value, "f4"), "b": np.arange(rows, dtype="f4")})
    frame.to_parquet(path, row_group_size=4)
    os.utime(path, ns=(0, int(value * 1e9)))
    return path


def samples_of(path):
    return SampleSet.from_parquet(path, x=["a"], y=["b"])


def test_a_replaced_parquet_file_of_as_many_rows_is_noticed(tmp_path):
    path = parquet(tmp_path / "x.parquet", 1)
    samples = samples_of(path)
    assert samples.head(1)["x"].tolist() == [[1]]
    parquet(path, 2)
    with pytest.raises(DataError, match=r"x.parquet: expected the file .*, found another .* anew"):
        samples.recipes[0].load()
    assert samples_of(path).head(1)["x"].tolist() == [[2]]
    os.utime(path, ns=(0, 5))
    parquet(path, 1)
    assert samples.recipes[0].load().take(np.arange(1))["x"].tolist() == [[1]]


def test_a_replaced_archive_is_noticed(tmp_path):
    path = tmp_path / "x.tar"

    def write(texts):
        with tarfile.open(path, "w") as archive:
            for i, text in enumerate(texts):
                member = tarfile.TarInfo(f"{i}.txt")
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text))
        os.utime(path, ns=(0, len(texts[0])))

    write([b"one", b"two"])
    samples = SampleSet.from_tar(path, x="txt", on_error="skip")
    assert len(samples) == 2
    write([b"thousands", b"two"])
    with pytest.raises(DataError, match=r"x.tar: expected the file that the samples were made of"):
        samples.recipes[0].load()


def test_a_replaced_file_of_one_sample_is_noticed(tmp_path):
    for name, value in (("a.bin", b"1"), ("b.bin", b"2")):
        (tmp_path / name).write_bytes(value)
    samples = SampleSet.from_files(
        tmp_path, lambda file: {"x": np.float32(file.read())}, partitions=2
    )
    assert [r.load().take(np.arange(1))["x"].tolist() for r in samples.recipes] == [[1], [2]]
    (tmp_path / "b.bin").write_bytes(b"30")
    assert samples.recipes[0].load().take(np.arange(1))["x"].tolist() == [1]
    with pytest.raises(DataError, match=r"b.bin: expected the file .*, 1 bytes .* found another"):
        samples.recipes[1].load()


@pytest.mark.parametrize("kind", ["zarr", "xarray"])
def test_a_replaced_zarr_store_is_noticed_but_one_may_grow(tmp_path, kind):
    path = tmp_path / "x.zarr"

    def write(value, rows=8):
        array = xr.DataArray(np.full((rows, 2), value, "f4"), dims=("n", "f"))
        array.to_dataset(name="a").to_zarr(
            path, mode="w", zarr_format=3, consolidated=False, encoding={"a": {"chunks": (2, 2)}}
        )

    write(1)
    if kind == "zarr":
        samples = SampleSet.from_zarr(path, x="a", partitions=2)
    else:
        samples = SampleSet.from_xarray(path, dim="n", x="a", partitions=2)
    group = zarr.open_group(path, mode="r+")
    group["a"].append(np.full((2, 2), 5, "f4"))
    (recipe, _) = samples.recipes
    assert recipe.load().take(np.arange(1))["x"].tolist() == [[1, 1]]
    write(2)
    with pytest.raises(DataError, match=r"x.zarr, a: expected the file .* found another in its"):
        recipe.load()


class Handler(BaseHTTPRequestHandler):
    """Serves one file by ranges, with its ETag, as object stores do."""

    content, tag = b"", "one"

    def do_HEAD(self):
        self.reply(b"", len(self.content))

    def do_GET(self):
        start, stop = self.headers.get("Range", "bytes=0-").removeprefix("bytes=").split("-")
        body = self.content[int(start) : int(stop) + 1 if stop else None]
        self.reply(body, len(body), int(start))

    def reply(self, body, length, start=0):
        self.send_response(206 if "Range" in self.headers else 200)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", self.tag)
        self.send_header("Content-Length", str(length))
        self.send_header("Content-Range", f"bytes {start}-{start + length - 1}/{len(self.content)}")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@contextmanager
def served():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/x.parquet"
        finally:
            server.shutdown()
            thread.join()


def test_a_changed_etag_is_noticed(tmp_path):
    pytest.importorskip("aiohttp")
    Handler.tag = "one"
    Handler.content = parquet(tmp_path / "x.parquet", 1).read_bytes()
    with served() as url:
        samples = samples_of(url)
        assert samples.head(1)["x"].tolist() == [[1]]
        Handler.tag = "two"
        with pytest.raises(DataError, match=r"bytes of one, found another in its place, .* of two"):
            samples.recipes[0].load()


def test_each_file_of_a_list_of_urls_is_asked_for_its_tag():
    pytest.importorskip("aiohttp")
    Handler.tag, Handler.content = "one", b"1"
    with served() as url:
        for urls in (url, [url, f"{url}?2"]):
            Handler.tag = "one"
            samples = SampleSet.from_files(
                urls, lambda file: {"x": np.float32(file.read())}, partitions=1
            )
            (recipe,) = samples.recipes
            assert recipe.load().take(np.arange(1))["x"].tolist() == [1]
            Handler.tag = "two"
            with pytest.raises(DataError, match=r"bytes of one, found another in its place"):
                recipe.load()


def trainer():
    return Trainer(Linear(1, 1, seed=0), MSELoss(), SGD(0.01))


def test_a_fit_stops_where_it_reads_another_file(tmp_path):
    path = parquet(tmp_path / "x.parquet", 1)

    class Replace(Callback):
        def on_epoch_end(self, trainer, epoch, logs):
            parquet(path, 2)

    streams = samples_of(path).stream(held="1 kB")
    with pytest.raises(TrainingError, match=r"shard \d.*DataError: .*found another in its place"):
        trainer().fit(streams, epochs=9, batch_size=4, callbacks=[Replace()], progress=False)


def test_a_run_that_goes_on_says_that_the_files_have_changed(tmp_path, caplog):
    path = parquet(tmp_path / "x.parquet", 1)
    options = {"batch_size": 4, "checkpoint": tmp_path / "run", "progress": False}
    trainer().fit(samples_of(path), epochs=1, **options)
    trainer().fit(samples_of(path).repartition(2), epochs=2, **options)
    assert not [record for record in caplog.records if record.name.startswith("daskdl.train")]
    parquet(path, 2)
    trainer().fit(samples_of(path), epochs=3, **options)
    assert "the samples' files have changed since the checkpoint" in caplog.text
