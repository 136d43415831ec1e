"""Output: messages for people on standard error, data on standard output."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer

#: Seconds between two lines of progress where there is no terminal.
INTERVAL = 30


def say(sentence: str) -> None:
    """Print a line for people."""
    typer.echo(sentence, err=True)


def print_json(result: Any) -> None:
    """Print data for machines."""
    typer.echo(json.dumps(result, indent=1))


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function of (done, total): a bar on a terminal, occasional lines elsewhere."""
    if not sys.stderr.isatty():
        yield _Lines(label)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    times = (TimeElapsedColumn(), TimeRemainingColumn())
    bar = Progress(*columns, *times, console=Console(stderr=True))
    with bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


class _Lines:
    """Reports progress at most once in ``INTERVAL`` seconds."""

    def __init__(self, label: str) -> None:
        self.label, self.last = label, time.monotonic()
        self.began = self.last, 0

    def __call__(self, done: int, total: int) -> None:
        if self.began[1] == 0:
            self.began = time.monotonic(), done  # a run that goes on begins with what it has
        if time.monotonic() - self.last >= INTERVAL:
            self.last = time.monotonic()
            began, first = self.began
            seconds = (self.last - began) / max(1, done - first) * (total - done)
            minutes = round(seconds / 60)
            rest = f", about {minutes} min left" if minutes else ""
            say(f"{self.label}: {done} of {total}{rest}")
