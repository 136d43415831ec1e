"""Metrics of streams as Prometheus reads them from Dask's /metrics."""

from __future__ import annotations

import urllib.request

import numpy as np
import pytest

from ci.kafka import produce
from daskdl.stream import Stream
from daskdl.stream.worker.latency import Histogram
from daskdl.stream.worker.metrics import served_by_dask
from daskdl.stream.worker.orders import Report
from tests.daskdl.stream.models import stream_of, utterances

prometheus = pytest.importorskip("prometheus_client")


def test_counts_positions_and_latencies():
    latencies = Histogram()
    latencies.add(np.array([1.0, 2.0, 500.0]))
    report = Report(
        answers=3, dead=1, latencies=latencies.sparse(), milliseconds=503.0,
        positions=[("calls", 2, 17, True)],
    )  # fmt: skip
    withdraw = served_by_dask(lambda: [("g", report)])
    try:
        text = prometheus.generate_latest().decode()
    finally:
        withdraw()
    assert 'daskdl_stream_answers_total{group="g"} 3.0' in text
    assert 'daskdl_stream_dead_letters_total{group="g"} 1.0' in text
    assert 'daskdl_stream_position{group="g",partition="2",topic="calls"} 17.0' in text
    assert 'daskdl_stream_latency_seconds_count{group="g"} 3.0' in text
    assert 'daskdl_stream_latency_seconds_sum{group="g"} 0.503' in text
    assert "daskdl_stream" not in prometheus.generate_latest().decode()


def test_a_workers_own_page_has_them(client, mock, name, model):
    produce(mock.servers, name, 4, utterances(40))
    pages: list[str] = []

    def watch(stream: Stream) -> None:
        if stream.status.records == 40 and not pages:
            workers = client.scheduler_info(n_workers=-1)["workers"].values()
            for worker in workers:
                port = worker["services"].get("dashboard")
                if port is not None:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as page:
                        pages.append(page.read().decode())
            stream.stop()

    stream_of(mock, name, model).run(client, seconds=60, watch=watch)
    assert len(pages) == 2
    assert all(f'daskdl_stream_answers_total{{group="{name}"}}' in page for page in pages)
