"""Progress of a benchmark: the row that is measured now, on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def telling(text: str, wanted: bool = True) -> Iterator[None]:
    """Show a text that moves, on a terminal as long as this lasts; elsewhere a plain line."""
    if not wanted:
        yield
    elif sys.stderr.isatty():
        from rich.console import Console

        with Console(stderr=True).status(text):
            yield
    else:
        print(text, file=sys.stderr, flush=True)
        yield
