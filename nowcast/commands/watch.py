"""``nowcast watch``."""

from __future__ import annotations

import logging
import re
import signal
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from daskdl.errors import DataError, SettingsError
from nowcast.commands.arguments import lead_minutes, storage_options
from nowcast.commands.talk import say

if TYPE_CHECKING:
    import numpy as np

#: Seconds between the two looks of --once.
PAUSE = 1.0


def watch(
    source: Annotated[str, typer.Argument(help="Folder, pattern or address where scans arrive.")],
    out: Annotated[Path, typer.Option(help="Folder of the store, forecasts and status.")],
    method: Annotated[str, typer.Option(help="As nowcast predict has them.")] = "sprog",
    model: Annotated[
        Path | None, typer.Option(help="Folder of a model that 'nowcast train' wrote.")
    ] = None,
    interval: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 5.0,
    once: Annotated[
        bool, typer.Option("--once", help="Take in what is there, forecast, and end.")
    ] = False,
    keep: Annotated[str, typer.Option(help="How long frames are kept, e.g. 36h or 7d.")] = "1d",
    keep_forecasts: Annotated[str, typer.Option(help="How long forecasts are kept.")] = "1d",
    lead: Annotated[str | None, typer.Option(help="How far ahead, e.g. 2h.")] = None,
    members: Annotated[int, typer.Option(min=0, help="Members of an ensemble.")] = 0,
    size: Annotated[str, typer.Option(help="Cells of the grid, 256 or 200x300.")] = "256",
    spacing: Annotated[float, typer.Option(help="Metres between cells.")] = 1000.0,
    alerts: Annotated[
        Path | None, typer.Option(help="YAML of what is alerted, and to whom; see the how-to.")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, help="Answer /healthz and /metrics on this port here.")
    ] = None,
    storage: Annotated[
        list[str] | None, typer.Option(help="Of addresses: an option of fsspec; several times.")
    ] = None,
) -> None:
    """Take in scans as they arrive, and forecast from each new one.

    Ends after the cycle that it is in at Ctrl-C or SIGTERM; killed at any moment, it goes on from
    what lies in its folder when it is started again.
    """
    from daskdl import files
    from nowcast.ingest.remote import Access
    from nowcast.ingest.settings import IngestSettings
    from nowcast.live.health import served
    from nowcast.live.settings import Alerts, read_yaml
    from nowcast.live.watch import Watch

    kept, kept_forecasts = _duration("--keep", keep), _duration("--keep-forecasts", keep_forecasts)
    out.mkdir(parents=True, exist_ok=True)
    try:
        with files.locked(out / ".watch.lock"):
            _log_to(out / "watch.log")
            settings = IngestSettings.of(size=size, spacing=spacing)
            access = Access(storage_options(storage or ()))
            run = Watch(
                source, out, method, settings, model, access, lead_minutes(lead), members, kept,
                kept_forecasts, None if alerts is None else read_yaml(alerts, Alerts),
            )  # fmt: skip
            if once:
                run.look()
                time.sleep(PAUSE)
                run.cycle()
                run.verify_all()
            else:
                with nullcontext() if port is None else served(run.status, port):
                    _until_ended(run.cycle, interval)
    except files.HeldError as holder:
        raise DataError(
            f"{out}: expected no other watch that writes it, found one ({holder}); end it first"
        ) from None
    say(f"{out}: {run.status['scans']} scans, {run.status['forecasts']} forecasts so far")
    if once and run.status["last_error"]:
        raise DataError(run.status["last_error"])


def _until_ended(cycle: Callable[[], object], interval: float) -> None:
    """Call a function every so many seconds, until Ctrl-C or SIGTERM; its call is ended first."""
    ended = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: ended.set())
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        while not ended.is_set():
            began = time.monotonic()
            cycle()
            ended.wait(max(0.0, interval - (time.monotonic() - began)))
        say("watch ends; the same command goes on from here")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _log_to(path: Path) -> None:
    """Let the log be written to a bounded file, and to standard error."""
    from logging.handlers import RotatingFileHandler

    logger = logging.getLogger("nowcast")
    for handler in logger.handlers[:]:
        logger.removeHandler(handler)
        handler.close()
    kept = RotatingFileHandler(path, maxBytes=2**20, backupCount=2, encoding="utf-8")
    kept.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    for handler in (kept, logging.StreamHandler()):
        logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False


def _duration(option: str, text: str) -> np.timedelta64:
    """Return the time that ``90min``, ``36h`` or ``7d`` tells."""
    import numpy as np

    match = re.fullmatch(r"\s*(\d+)\s*(min|h|d)\s*", text)
    if not match or not int(match[1]):
        raise SettingsError(f"{option}: expected a time such as 90min, 36h or 7d, found {text!r}")
    return np.timedelta64(int(match[1]) * {"min": 1, "h": 60, "d": 1440}[match[2]], "m")
