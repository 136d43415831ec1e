"""Prometheus metrics of the sessions of a process, on Dask's own /metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from daskdl.stream.worker.latency import EDGES
from daskdl.stream.worker.orders import Report

#: Every so many of the histogram's edges are exported: steps of about a half.
STEP = 4


class StreamMetrics:
    """A collector of prometheus_client; ``reports`` returns all sessions' in this process."""

    def __init__(self, reports: Callable[[], Iterable[tuple[str, Report]]]) -> None:
        self._reports = reports

    def collect(self) -> Iterator[Any]:
        """Yield the current metrics."""
        from prometheus_client.core import (
            CounterMetricFamily,
            GaugeMetricFamily,
            HistogramMetricFamily,
        )

        def counter(name: str, text: str) -> Any:
            return CounterMetricFamily(f"daskdl_stream_{name}", text, labels=["group"])

        counters = {
            "answers": counter("answers", "Answers committed."),
            "dead": counter("dead_letters", "Dead letters committed."),
            "errors": counter("read_again", "Times that a session had to read again."),
            "missing": counter("offsets_missing", "Offsets that the broker had not any more."),
        }
        positions = GaugeMetricFamily(
            "daskdl_stream_position", "Next offset.", labels=["group", "topic", "partition"]
        )
        latency = HistogramMetricFamily(
            "daskdl_stream_latency_seconds",
            "From the broker's timestamp to the committed answer.",
            labels=["group"],
        )
        for group, report in self._reports():
            for name, family in counters.items():
                family.add_metric([group], getattr(report, name))
            for topic, number, offset, _ in report.positions:
                positions.add_metric([group, topic, str(number)], offset)
            histogram = report.histogram()
            below = histogram.counts.cumsum()
            buckets = [
                (f"{EDGES[i] / 1000:.6g}", int(below[i])) for i in range(0, len(EDGES), STEP)
            ]
            buckets.append(("+Inf", int(below[-1])))
            latency.add_metric([group], buckets, report.milliseconds / 1000)
        yield from (*counters.values(), positions, latency)


def served_by_dask(reports: Callable[[], Iterable[tuple[str, Report]]]) -> Callable[[], None]:
    """Register the metrics for Dask's /metrics; return a function that unregisters them."""
    try:
        from prometheus_client import REGISTRY
    except ImportError:  # and Dask serves no metrics either
        return lambda: None
    collector = StreamMetrics(reports)
    REGISTRY.register(collector)
    return lambda: REGISTRY.unregister(collector)
