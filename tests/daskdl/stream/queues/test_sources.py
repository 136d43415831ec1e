"""Streams from and to folders and functions."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from daskdl.errors import DataError, SettingsError
from daskdl.stream import (
    CallbackSink,
    CallbackSource,
    DirectorySink,
    DirectorySource,
    Routes,
    Stream,
)
from tests.daskdl.stream.models import utterances

ROUTES = Routes("routes", "dead")


def lines_of(folder: Path) -> list[dict]:
    texts = [file.read_text() for file in sorted(folder.iterdir())]
    return [json.loads(line) for text in texts for line in text.splitlines()]


@pytest.mark.slow
def test_files_of_a_folder_are_answered_once(client, model, tmp_path):
    values = [v.decode() for v in utterances(200)]
    (tmp_path / "in").mkdir()
    for i in range(5):
        part = "".join(json.dumps({"text": v}) + "\n" for v in values[40 * i : 40 * i + 40])
        (tmp_path / "in" / f"part-{i}.jsonl").write_text(part + "no JSON\n")

    def run() -> Stream:
        source = DirectorySource(tmp_path / "in")
        sink = DirectorySink(tmp_path / "out")
        stream = Stream(source, sink, model, ROUTES, schema="json:text")
        stream.run(client, until_end=True, seconds=60)
        return stream

    assert run().status.records == 205
    answers = lines_of(tmp_path / "out" / "routes")
    assert sorted(a["place"] for a in answers) == sorted(
        f"part-{i}.jsonl/0/{j}" for i in range(5) for j in range(40)
    )
    assert all(a["answer"]["sha256"] == model.sha256 for a in answers)
    dead = lines_of(tmp_path / "out" / "dead")
    assert [(d["value"], d["offset"]) for d in dead] == [("no JSON", "40")] * 5
    assert run().status.records == 0  # all is done
    (tmp_path / "in" / "part-5.jsonl").write_text(json.dumps({"text": "w1"}) + "\n")
    assert run().status.records == 1


def test_rows_of_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"text": ["a", "b"], "n": [1, 2]}), tmp_path / "x.parquet")
    source = DirectorySource(tmp_path, "*.parquet")
    reader = source.reader("run")
    reader.assign(source.partitions())
    records = reader.poll(10, 0)
    assert [json.loads(r.value) for r in records] == [{"text": "a", "n": 1}, {"text": "b", "n": 2}]
    assert reader.poll(10, 0) == []
    reader.commit(reader.positions())
    assert source.partitions() == []


def test_a_damaged_file_is_one_dead_letter_and_no_other_waits_for_it(client, model, tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.parquet").write_bytes(b"PAR1 and no more")
    for name in "bcd":
        pq.write_table(pa.table({"text": ["w1", "w2"]}), tmp_path / "in" / f"{name}.parquet")

    def run() -> dict:
        source, sink = (
            DirectorySource(tmp_path / "in", "*.parquet"),
            DirectorySink(tmp_path / "out"),
        )
        stream = Stream(source, sink, model, ROUTES, schema="json:text")
        return stream.run(client, until_end=True, seconds=60).as_dict()

    status = run()
    assert (status["answers"], status["dead_letters"], status["read_again"]) == (6, 1, 0)
    (dead,) = lines_of(tmp_path / "out" / "dead")
    assert re.match("read: .*a.parquet: expected a whole Parquet file, found ", dead["reason"])
    assert run()["records"] == 0


def test_functions_as_source_and_sink(client, model, tmp_path):
    values = utterances(30)

    def read(partition: int, offset: int, limit: int) -> list[bytes]:
        return values[partition::2][offset : offset + min(limit, 4)]

    def committed(partition: int) -> int:
        file = tmp_path / str(partition)
        return int(file.read_text()) if file.exists() else 0

    def commit(partition: int, offset: int) -> None:
        (tmp_path / str(partition)).write_text(str(offset))

    def keep(outputs) -> None:
        for output in outputs:
            (tmp_path / output.record.place.replace("/", "-")).write_bytes(output.value)

    source = CallbackSource(read, committed, commit, partitions=2, group="g")
    status = Stream(source, CallbackSink(keep), model, ROUTES).run(
        client, until_end=True, seconds=60
    )
    assert status.records == 30
    assert (committed(0), committed(1)) == (15, 15)
    assert len(list(tmp_path.glob("g-*"))) == 30


def test_missing_folders_and_other_patterns_are_refused(tmp_path):
    with pytest.raises(DataError, match="expected a folder, found none"):
        DirectorySource(tmp_path / "absent")
    with pytest.raises(
        SettingsError, match=r"expected one of \.jsonl or \.parquet, found '\*\.csv'"
    ):
        DirectorySource(tmp_path, "*.csv")
