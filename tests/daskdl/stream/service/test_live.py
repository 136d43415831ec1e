"""Tests of the table and the line that a running stream shows."""

from __future__ import annotations

import hashlib
from types import SimpleNamespace

import numpy as np

from daskdl.stream.driver.status import Status
from daskdl.stream.service.live import as_line, as_table, shown
from daskdl.stream.worker.latency import Histogram
from daskdl.stream.worker.model_file import ModelFile
from daskdl.stream.worker.orders import Report


def test_before_the_first_answer_there_is_no_latency() -> None:
    line = as_line(Status(ModelFile("m", b"")))
    assert line.startswith("0 records, 0/s, lag 0, p50 -, p99 -, 0 dead letters, 0 workers")


def test_latencies_of_a_worker() -> None:
    latencies, status = Histogram(), Status(ModelFile("m", b""))
    latencies.add(np.full(3, 20.0))
    report = Report(records=3, latencies=latencies.sparse())
    status.workers, status.reports = {"tcp://a": report}, [report]
    assert " ms, p99 " in as_line(status)
    table = as_table(status)
    assert "p50 -" not in str(table.caption)
    assert list(table.columns[0].cells) == ["tcp://a"]


def test_another_model_is_told_at_once_and_stays_in_view(capsys) -> None:
    stream = SimpleNamespace(status=Status(ModelFile("a", b"a")))
    with shown(True) as show:
        show(stream)
        assert capsys.readouterr().err == ""  # not due
        for name in "bc":
            stream.status.model = ModelFile(name, name.encode())
            stream.status.models.append(stream.status.model.sha256)
            show(stream)
            show(stream)
    first, second = capsys.readouterr().err.splitlines()
    assert first.endswith(f"model b {hashlib.sha256(b'b').hexdigest()[:12]} (swapped once)")
    assert second.endswith("(swapped 2 times)")
    assert "(swapped 2 times)" in str(as_table(stream.status).title)
