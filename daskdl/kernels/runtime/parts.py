"""Sums of parts: how many parts there are is up to the work alone, so that sums have one order."""

from __future__ import annotations

from typing import Any

from daskdl.kernels.runtime.calls import address_of, call, lay_out
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.signals import (
    DONE,
    ENDED,
    POSTED,
    STATUS,
    WAITING,
    atomic_load,
    wait_until,
)
from daskdl.kernels.runtime.team import SLOT, do, post, single_threaded, slots_of
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
    count = min(threads(), parts)
    place = slots_of(count - 1) if count > 1 else 0
    address = address_of(kernel, (), arguments)
    if single_threaded(_drive, address, place, count, parts, n_items, (), arguments):
        raise MemoryError(f"{kernel.__name__}: a part of it failed, which takes a lack of memory")


@jit
def _drive(kernel, slots, count, parts, n_items, rows, whole):
    """Have all parts done, ``count`` at a time; return failures."""
    function, arguments = lay_out(rows, whole, 1)
    failed = 0
    for first in range(0, parts, count):
        last = min(parts, first + count)
        for i in range(first + 1, last):
            start, stop = n_items * i // parts, n_items * (i + 1) // parts
            post(slots + (i - first - 1) * SLOT, function, kernel, arguments, i, start, stop)
        start, stop = n_items * first // parts, n_items * (first + 1) // parts
        failed |= call(function, kernel, arguments, first, start, stop)
        for i in range(first + 1, last):
            do(slots + (i - first - 1) * SLOT)
        for i in range(first + 1, last):
            slot = slots + (i - first - 1) * SLOT
            wait_until(slot, DONE, atomic_load(slot, POSTED), WAITING, ENDED)
            failed |= atomic_load(slot, STATUS)
    return failed
