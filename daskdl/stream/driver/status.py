"""Status of a stream, added up over its sessions."""

from __future__ import annotations

import time
from typing import Any

from daskdl.stream.driver.sessions import HandOver, Sessions
from daskdl.stream.queues.records import Partition
from daskdl.stream.worker.latency import Histogram
from daskdl.stream.worker.model_file import ModelFile
from daskdl.stream.worker.orders import Report

#: Seconds over which the rate is taken.
WINDOW = 5.0
PERCENTILES = 50, 95, 99


class Status:
    """Counts of a stream; a killed worker counts with its last answer."""

    def __init__(self, model: ModelFile) -> None:
        self.model, self.began = model, time.monotonic()
        self.reports: list[Report] = []
        self.workers: dict[str, Report] = {}
        self.hand_overs: list[HandOver] = []
        self.rejected: dict[str, str] = {}
        self.models: list[str] = [model.sha256]
        self.ends: dict[Partition, int] = {}
        self._positions: dict[Partition, tuple[int, bool]] = {}
        self._rates: list[tuple[float, int]] = []

    def take(self, sessions: Sessions) -> None:
        """Read the newest reports."""
        now = [(s.spec.address, s.report) for s in sessions.sessions.values() if s.report]
        self.workers = dict(now)
        self.reports = [*sessions.past, *self.workers.values()]
        for report in self.reports:
            for topic, number, offset, at_end in report.positions:
                self._positions[Partition(topic, number)] = offset, at_end
        self.hand_overs, self.rejected = sessions.hand_overs, dict(sessions.rejected)
        if sessions.model.sha256 != self.model.sha256:
            self.model = sessions.model
            self.models.append(self.model.sha256)
        moment = time.monotonic()
        self._rates.append((moment, self.records))
        while len(self._rates) > 2 and moment - self._rates[0][0] > WINDOW:
            self._rates.pop(0)

    @property
    def records(self) -> int:
        """Number of records that were answered or set aside, and committed."""
        return sum(report.records for report in self.reports)

    @property
    def swaps(self) -> int:
        """Number of changes of the model."""
        return len(self.models) - 1

    @property
    def rate(self) -> float:
        """Recent records per second."""
        if len(self._rates) < 2:
            return 0.0
        (then, before), (now, after) = self._rates[0], self._rates[-1]
        return (after - before) / max(now - then, 1e-9)

    def lag(self) -> dict[str, int]:
        """Return for each partition how many offsets were not read yet at the last look."""
        lags = {}
        for partition, end in self.ends.items():
            offset, at_end = self._positions.get(partition, (0, False))
            lags[str(partition)] = 0 if at_end else max(0, end - offset)
        return lags

    def latency(self) -> Histogram:
        """Return all latencies, from the broker's timestamp to the committed answer."""
        total = Histogram()
        for report in self.reports:
            total.counts += report.histogram().counts
        return total

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        p50, p95, p99 = self.latency().percentiles(*PERCENTILES)
        seconds = time.monotonic() - self.began
        return {
            "records": self.records,
            "answers": sum(r.answers for r in self.reports),
            "dead_letters": sum(r.dead for r in self.reports),
            "seconds": round(seconds, 3),
            "records_per_second": round(self.records / max(seconds, 1e-9), 1),
            "latency_ms": {"p50": _number(p50), "p95": _number(p95), "p99": _number(p99)},
            "lag": self.lag(),
            "read_again": sum(r.errors for r in self.reports),
            "offsets_missing": sum(r.missing for r in self.reports),
            "last_error": next((r.error for r in reversed(self.reports) if r.error), ""),
            "model": {"name": self.model.name, "sha256": self.model.sha256},
            "models": self.models,
            "rejected": self.rejected,
            "hand_overs": [
                {"worker": h.worker, "why": h.why, "seconds": _number(h.seconds)}
                for h in self.hand_overs
            ],
        }


def _number(value: float) -> float | None:
    return None if value != value else round(value, 3)
