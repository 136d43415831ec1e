"""Features of pictures in a PostgreSQL table, also when the server goes away in the middle."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from daskdl import save
from daskdl.errors import DataError
from daskdl.models import DeepBit, MobileSSD
from daskdl.models.vgg import VGG16Trunk
from tests.daskdl.data.sources.postgres import PASSWORD, Server
from tests.examples.test_image_features import EXAMPLES, picture, rows_of

psycopg = pytest.importorskip("psycopg")


@pytest.fixture
def example(monkeypatch):
    """Return the example, imported as Python does when it is run."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield importlib.import_module("image_features")
    sys.modules.pop("image_features", None)


@pytest.mark.slow
def test_a_server_that_stops_loses_nothing(example, tmp_path, monkeypatch):
    save(MobileSSD(3, 64, 0.125), tmp_path / "detector.safetensors")
    save(DeepBit(16, VGG16Trunk(1, width=1 / 64, hidden=8)), tmp_path / "describer.safetensors")
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    with Server() as server:
        with psycopg.connect(server.connection, password=PASSWORD) as connection:
            connection.execute("CREATE TABLE shop (id bigint PRIMARY KEY, name text, image bytea)")
            with connection.cursor() as cursor:
                cursor.executemany(
                    "INSERT INTO shop VALUES (%s, %s, %s)",
                    [(7 * i, f"p{i}", picture(i) if i != 4 else None) for i in range(9)],
                )

        def call(out: Path):
            return example.main(
                [server.connection, str(out), "--table", "shop", "--key", "id", "--partitions",
                 "3", "--detector", str(tmp_path / "detector.safetensors"), "--describer",
                 str(tmp_path / "describer.safetensors"), "--detector-look", "64",
                 "--describer-look", "224,1", "--least", "0.05", "--workers", "0"]
            )  # fmt: skip

        report = call(tmp_path / "whole")
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
        import dask

        with dask.config.set(scheduler="synchronous"):
            with pytest.raises(DataError, match="shop: expected to read it from PostgreSQL at"):
                call(tmp_path / "parts")
            assert len(list((tmp_path / "parts").iterdir())) == 1
            server.start()
            call(tmp_path / "parts")
        assert len(ready) == 4  # the partition that failed, and the one that was not begun
        assert rows_of(tmp_path / "parts") == rows_of(tmp_path / "whole")
