"""``nowcast ingest``."""

from __future__ import annotations

import logging
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from daskdl.errors import DataError
from nowcast.commands.talk import print_json, progress_bar, say


def run(
    sources: list[str], out: Path, *, cluster: str, workers: int | None, as_json: bool, **given: Any
) -> None:
    """Ingest; end with exit code 3 when a file could not be read, 1 when that is our mistake."""
    from daskdl.cluster import connect
    from nowcast.ingest.ingest import ingest
    from nowcast.ingest.settings import IngestSettings
    from nowcast.ingest.sources import find_files
    from nowcast.radar.guard import ReaderError

    settings = IngestSettings.of(**{k: v for k, v in given.items() if v is not None})
    find_files(sources)  # refuse what is not there before workers are started
    _print_warnings()
    with connect(cluster, workers=workers) as client, progress_bar("ingest") as advance:
        report = ingest(sources, out, settings, client=client, progress=advance)
    say(
        f"{out}: {report.written} scans written, {report.existing} there before, "
        f"{report.repeated} repeated, {len(report.failed)} files not read"
    )
    if report.written:
        say(f"{out}: of {report.area}, {report.coverage}")
    if as_json:
        print_json(asdict(report))
    if report.mistakes:
        raise typer.Exit(ReaderError.exit_code)
    if report.failed:
        raise typer.Exit(DataError.exit_code)


def _print_warnings() -> None:
    """Let the files that are skipped be named on standard error."""
    log = logging.getLogger("nowcast")
    if not log.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(message)s"))
        log.addHandler(handler)
        log.propagate = False
