"""``nowcast watch``, and ``nowcast config`` for its settings."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from daskdl.errors import DataError, SettingsError
from nowcast.commands.arguments import Model
from nowcast.commands.talk import print_json, say

if TYPE_CHECKING:
    from nowcast.live.office import Office

#: Seconds between the two looks of --once.
PAUSE = 1.0


def watch(
    context: typer.Context,
    source: Annotated[
        str | None, typer.Argument(help="Folder, pattern or address where scans arrive.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the store, forecasts and status.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="All settings in YAML, see nowcast config; options here come before."),
    ] = None,
    method: Annotated[str, typer.Option(help="As nowcast predict has them.")] = "sprog",
    model: Model = None,
    interval: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 5.0,
    once: Annotated[
        bool, typer.Option("--once", help="Ingest the scans that are there, forecast, and end.")
    ] = False,
    keep: Annotated[str, typer.Option(help="How long frames are kept, e.g. 36h or 7d.")] = "1d",
    keep_forecasts: Annotated[str, typer.Option(help="How long forecasts are kept.")] = "1d",
    lead: Annotated[str | None, typer.Option(help="How far ahead, e.g. 2h.")] = None,
    members: Annotated[int, typer.Option(min=0, help="Members of an ensemble.")] = 0,
    also: Annotated[
        list[str] | None,
        typer.Option(help="Write with each forecast: cog, grib, pictures, cells; several times."),
    ] = None,
    size: Annotated[str, typer.Option(help="Cells of the grid, 256 or 200x300.")] = "256",
    spacing: Annotated[float, typer.Option(help="Metres between cells.")] = 1000.0,
    alerts: Annotated[
        Path | None, typer.Option(help="YAML of alerts and who gets them; see the how-to.")
    ] = None,
    trigger: Annotated[
        str | None, typer.Option(help="mqtt://host/topic: look at once when a message comes.")
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
    from nowcast.live.health import served
    from nowcast.live.office import write_resolved
    from nowcast.live.watch import Watch

    options = {
        name: value
        for name, value in context.params.items()
        if name not in ("config", "once")
        and getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"
    }
    settings = _settings(config, options)
    settings.out.mkdir(parents=True, exist_ok=True)
    try:
        with files.locked(settings.out / ".watch.lock"):
            _log_to(write_resolved(settings).with_name("watch.log"))
            run = Watch(settings)
            if once:
                run.look()
                time.sleep(PAUSE)
                run.cycle()
                run.verify_all()
            else:
                port = settings.port
                with nullcontext() if port is None else served(run.status, port):
                    _until_ended(run.cycle, settings)
    except files.HeldError as holder:
        raise DataError(
            f"{settings.out}: expected no other watch that writes it, found one ({holder}); end it "
            "first"
        ) from None
    forecasts = f"{run.status['forecasts']} forecasts so far"
    say(f"{settings.out}: {run.status['scans']} scans, {forecasts}")
    if once and run.status["last_error"]:
        raise DataError(run.status["last_error"])


def _settings(config: Path | None, options: dict[str, Any]) -> Office:
    """Return the settings of a file; options of the command line replace them."""
    from nowcast.live.office import Office
    from nowcast.live.settings import Alerts, checked, read_yaml
    from nowcast.rain.texts import assigned, load_yaml

    values = {} if config is None else load_yaml(config)
    grid = {name: options.pop(name) for name in ("size", "spacing") if name in options}
    if grid:
        values["ingest"] = (values.get("ingest") or {}) | grid
    if "storage" in options:
        options["storage"] = assigned("--storage", options["storage"])
    if "alerts" in options:
        options["alerts"] = read_yaml(Path(options["alerts"]), Alerts)
    if missing := [name for name in ("source", "out") if name not in values | options]:
        raise SettingsError(
            f"watch: expected {' and '.join(missing)}, found none; give SOURCE and --out, or "
            "--config FILE"
        )
    return checked(values | options, Office, "watch" if config is None else str(config))


def _until_ended(cycle: Callable[[], object], settings: Office) -> None:
    """Call a function every so many seconds, until Ctrl-C or SIGTERM; its call is ended first.

    After a new file or a message it is called at once, and again a second later, since a file is
    taken when two looks find it the same.
    """
    from nowcast.live.trigger import arriving, triggered

    ended, woken = threading.Event(), threading.Event()

    def end(*_: Any) -> None:
        ended.set()
        woken.set()

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    pause = interval = settings.interval
    source, wake = settings.source, woken.set
    try:
        with triggered(settings.trigger, wake), arriving(source, settings.out, wake):
            while not ended.is_set():
                began = time.monotonic()
                cycle()
                came = woken.wait(max(0.0, pause - (time.monotonic() - began)))
                pause = min(PAUSE, interval) if came else interval
                woken.clear()
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
    to_file = RotatingFileHandler(path, maxBytes=2**20, backupCount=2, encoding="utf-8")
    to_file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    for handler in (to_file, logging.StreamHandler()):
        logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False


def config(
    path: Annotated[
        Path | None, typer.Argument(help="File to check; its settings are printed in full.")
    ] = None,
    init: Annotated[
        bool, typer.Option("--init", help="Print a file of all settings with their defaults.")
    ] = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema, for editors.")
    ] = False,
) -> None:
    """Make or check the one YAML file of a watch: sources, grid, method, alerts, retention.

    nowcast watch --config FILE takes it.
    """
    import yaml

    from nowcast.live import office
    from nowcast.live.settings import read_yaml

    if init + schema + (path is not None) != 1:
        raise SettingsError("config: expected one of --init, --schema or a file; give one")
    if init:
        typer.echo(office.initial())
    elif schema:
        print_json(office.schema())
    elif path is not None:
        settings = office.plain(read_yaml(path, office.Office))
        typer.echo(yaml.safe_dump(settings, sort_keys=False), nl=False)
