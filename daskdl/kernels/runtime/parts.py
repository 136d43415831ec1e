"""Sums of parts: how many parts there are is up to the work alone, so that sums have one order."""

from __future__ import annotations

from typing import Any

from daskdl.kernels.runtime.team import share, single_threaded
from daskdl.kernels.runtime.threads import threads

#: Parts that a sum has at most: threads beyond that have nothing to do.
PARTS = 16


def n_fixed(n_items: int, least: int) -> int:
    """Return into how many parts to cut ``range(n_items)``, none below ``least``."""
    return max(1, min(PARTS, n_items // max(1, least)))


def over_parts(kernel: Any, n_items: int, least: int, *arguments: Any) -> None:
    """Call ``kernel(*arguments, which, start, stop)`` on parts of ``range(n_items)``.

    As :func:`~daskdl.kernels.runtime.team.over_range`, but the parts are the same for any number of
    threads, which take them in turn.

    Parameters
    ----------
    kernel : numba function without a result
        ``which`` is the part's number, from 0 and less than :func:`n_fixed` of the same.
    n_items, least : int
    *arguments
        What numba takes; arrays are only written where no two parts meet.

    Raises
    ------
    MemoryError
        If a part failed.
    """
    parts = n_fixed(n_items, least)
    if parts == 1:
        single_threaded(kernel, *arguments, 0, 0, n_items)
        return
    share(kernel, min(threads(), parts), parts, n_items, (), arguments)
