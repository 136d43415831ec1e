"""The speed that a stream reports is counted over the last seconds."""

from __future__ import annotations

from types import SimpleNamespace

from daskdl.stream.driver import status
from daskdl.stream.worker.orders import Report


def test_the_rate_is_that_of_the_last_seconds(monkeypatch):
    model, report = SimpleNamespace(sha256="a"), Report()
    sessions = SimpleNamespace(sessions={}, past=[report], hand_overs=[], rejected={}, model=model)
    counts = status.Status(model)
    for second in range(20):
        clock = SimpleNamespace(monotonic=lambda now=second: float(now))
        monkeypatch.setattr(status, "time", clock)
        report.records += 100 if second < 10 else 10 if second < 18 else 40
        counts.take(sessions)
        if second == 9:
            assert counts.rate == 100
    assert counts.rate == (3 * 10 + 2 * 40) / status.WINDOW
