"""Report: the rows of a sweep as lines for people and as plain data."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from daskdl.errors import SettingsError
from daskdl.scaling.split import PARTS
from daskdl.scaling.sweep import Row

#: Headings of columns of milliseconds, where they are shorter than their parts' names.
SHORT = {"broadcast": "bcast", "scheduling": "sched"}

HEADER = (
    f"{'workers':>7} {'scaling':<7} {'batch':>7} {'samples/s':>10} {'ms':>9}"
    + "".join(f" {SHORT.get(part, part):>8}" for part in PARTS)
    + f" {'effic. %':>8} {'busy %':>6}"
)


def line(row: Row) -> str:
    """Return a row for people; times are milliseconds of an iteration."""
    run = row.run
    parts = "".join(f" {1000 * run.parts[part]:>8.2f}" for part in PARTS)
    busy = "-" if run.busy is None else f"{100 * run.busy:.0f}"
    return (
        f"{run.workers:>7} {row.scaling:<7} {run.batch:>7} {run.rate:>10.4g} "
        f"{1000 * run.seconds:>9.2f}{parts} {100 * row.efficiency:>8.1f} {busy:>6}"
    )


def as_dict(row: Row) -> dict[str, Any]:
    """Return a row as plain data, of one level."""
    run = row.run
    return {
        "scaling": row.scaling,
        "workers": run.workers,
        "batch": run.batch,
        "iterations": run.iterations,
        "samples_per_second": run.rate,
        "seconds": run.seconds,
        **{f"{part}_seconds": run.parts[part] for part in PARTS},
        "efficiency": row.efficiency,
        "busy": run.busy,
    }


def write_json(path: Path, content: dict[str, Any], rows: Sequence[Row]) -> None:
    """Write the rows and their common facts as JSON."""
    content = {**content, "rows": [as_dict(row) for row in rows]}
    with replacing(path) as beside:
        beside.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield another path in the same folder; the file written there takes the place of ``path``."""
    beside = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        yield beside
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def check_place(option: str, path: Path | None) -> None:
    """Raise a SettingsError unless a file can be written here, before time is spent on it."""
    if path is None:
        return
    folder = path.absolute().parent
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise SettingsError(
            f"{option}: expected a file in a folder that can be written to, found {str(path)!r}; "
            "make the folder first, or name another"
        )
