"""A watch's health over HTTP: ``/healthz`` for a supervisor, ``/metrics`` for Prometheus."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from daskdl.errors import SettingsError
from nowcast.live.alerts import OUTCOMES
from nowcast.live.rolling import SCORES
from nowcast.live.status import COUNTS

GAUGES = ("cycle_seconds", "free_bytes", "forecast_bytes", "frames", "waiting")
#: Seconds without a cycle after which a watch is unhealthy; long forecasts are no failure.
SILENT = 900.0


@contextmanager
def served(status: Mapping[str, Any], port: int) -> Iterator[int]:
    """Answer on a port of this machine during a block, from a watch's status; yield the port.

    Raises SettingsError if the port is taken or not allowed.
    """

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/metrics":
                self._send(200, metrics(status))
            elif self.path == "/healthz":
                idle = time.monotonic() - status.get("monotonic", began)
                failing = status.get("failing", "")  # error of the last cycle, such as a full disk
                sentence = f"; {failing}" if failing else ""
                fine = idle < SILENT and not failing
                self._send(200 if fine else 503, f"last cycle {idle:.0f} s ago{sentence}\n")
            else:
                self._send(404, "expected /healthz or /metrics\n")

        def _send(self, code: int, text: str) -> None:
            body = text.encode()
            self.send_response(code)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass  # probes every few seconds are not logged

    began = time.monotonic()
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), Answer)
    except (OSError, OverflowError) as error:
        raise SettingsError(f"--port: expected a free port, found {port} ({error})") from None
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def metrics(status: Mapping[str, Any]) -> str:
    """Return a status as Prometheus text.

    Examples
    --------
    >>> print(metrics({"scans": 3}).splitlines()[1])
    nowcast_scans_total 3
    """
    values = {f"{name}_total": ("counter", status.get(name, 0)) for name in COUNTS}
    values |= {name: ("gauge", status.get(name, 0)) for name in GAUGES}
    values["damaged_files"] = ("gauge", len(status.get("damaged", ())))
    verified = status.get("verification", {})
    values["verified_forecasts"] = ("gauge", verified.get("n_cases", 0))
    values["behind"] = ("gauge", int(bool(verified.get("behind"))))
    recalibration = status.get("recalibration", {})
    values["recalibrated"] = ("gauge", int(recalibration.get("adopted", False)))
    if recalibration.get("change") is not None:
        values["recalibration_brier_change"] = ("gauge", recalibration["change"])
    alerts = status.get("alerts", {})
    values["alerts_on"] = ("gauge", len(alerts.get("on", ())))
    values |= {f"alerts_{name}": ("gauge", alerts.get(name, 0)) for name in OUTCOMES}
    lines = [
        f"# TYPE nowcast_{name} {kind}\nnowcast_{name} {value}\n"
        for name, (kind, value) in values.items()
    ]
    for score in SCORES:
        lines.append(f"# TYPE nowcast_{score} gauge\n")
        lines += [
            f'nowcast_{score}{{forecaster="{name}",lead_minutes="{lead}"}} {value}\n'
            for name, leads in verified.get(score, {}).items()
            for lead, value in leads.items()
            if value is not None
        ]
    return "".join(lines)
