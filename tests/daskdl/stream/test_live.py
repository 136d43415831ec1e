"""Tests of the table and the line that a running stream shows."""

from __future__ import annotations

import numpy as np

from daskdl.stream.latency import Histogram
from daskdl.stream.live import as_line, as_table
from daskdl.stream.orders import Report
from daskdl.stream.served import ModelFile
from daskdl.stream.status import Status


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
