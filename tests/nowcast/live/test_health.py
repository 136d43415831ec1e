"""A watch answers whether it is alive, and with what it has counted."""

from __future__ import annotations

import urllib.error
import urllib.request

import pytest

from daskdl.errors import SettingsError
from nowcast.live import health
from nowcast.live.health import served


def fetch(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
        return answer.read().decode()


def test_health_and_metrics(monkeypatch):
    status = {"scans": 7, "damaged": {"a.h5": "no"}, "failing": ""}
    with served(status, 0) as port:
        assert "nowcast_scans_total 7\n" in fetch(port, "/metrics")
        assert "nowcast_damaged_files 1\n" in fetch(port, "/metrics")
        assert "last cycle 0 s ago" in fetch(port, "/healthz")
        with pytest.raises(SettingsError, match="free port"), served({}, port):
            pass
        status["failing"] = "out: expected 34 MB free, found 1 MB"
        with pytest.raises(urllib.error.HTTPError, match="503") as refused:
            fetch(port, "/healthz")
        assert refused.value.read() == b"last cycle 0 s ago; out: expected 34 MB free, found 1 MB\n"
        refused.value.close()
        status["failing"] = ""
        monkeypatch.setattr(health, "SILENT", -1.0)
        with pytest.raises(urllib.error.HTTPError, match="503") as refused:
            fetch(port, "/healthz")
        refused.value.close()
