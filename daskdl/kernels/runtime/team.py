"""Teams: native threads that share a kernel's work with the thread that calls it."""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from daskdl.kernels.runtime.calls import address_of, call, lay_out, run
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.signals import (
    AWAKE,
    BEGUN,
    CELLS,
    DONE,
    ENDED,
    FEW_LOOKS,
    IDLE,
    JOB,
    LOOKS,
    MUTEX,
    PATIENCE,
    POSTED,
    STATUS,
    THREAD,
    WAITING,
    atomic_load,
    atomic_store,
    change,
    keep_off,
    tell,
    wait_until,
)
from daskdl.kernels.runtime.threads import available_cores, n_parts, threads

#: Bytes of a slot.
SLOT = 8 * CELLS


class Team:
    """Threads that wait for jobs from the thread that made them.

    They are daemons that do not hold Python's GIL while they wait. They end with their maker or
    with the interpreter, whichever ends first.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        memory = np.zeros((size + 1) * CELLS, np.int64)
        #: Address of the first thread's slot, at the beginning of a cache line.
        self.slots = memory.ctypes.data + -memory.ctypes.data % 64
        self.look(LOOKS)
        c = ctypes.CDLL(None)
        _serve.compile((types.int64,))  # now: not while a caller waits, nor at the end
        post.compile((types.int64,) * 7)
        threads = []
        for slot in range(self.slots, self.slots + size * SLOT, SLOT):
            c.pthread_mutex_init(ctypes.c_void_p(slot + 8 * MUTEX), None)
            for condition in (AWAKE, ENDED):
                c.pthread_cond_init(ctypes.c_void_p(slot + 8 * condition), None)
            # Each thread keeps a reference to the slots' memory.
            threads.append(threading.Thread(target=_work, args=(memory, slot), daemon=True))
            threads[-1].start()
        self.end = weakref.finalize(self, _dismiss, self.slots, threads)

    def look(self, times: int) -> None:
        """Set how often its threads, and a thread that waits for them, spin before they sleep."""
        for slot in range(self.slots, self.slots + self.size * SLOT, SLOT):
            _set(slot, PATIENCE, times)


def _work(memory: NDArray[np.int64], slot: int) -> None:
    _set(slot, THREAD, threading.get_native_id())
    _serve(slot)


def _dismiss(slots: int, threads: list[threading.Thread]) -> None:
    for i, thread in enumerate(threads):
        post(slots + i * SLOT, 0, 0, 0, 0, 0, 0)
        thread.join(1)


_local = threading.local()
_teams: weakref.WeakSet[Team] = weakref.WeakSet()
#: Lock of ``_teams``, which any thread may change.
_lock = threading.RLock()


def _team(size: int) -> Team:
    team: Team | None = getattr(_local, "team", None)
    if team is None or team.size < size or not team.end.alive:
        team = _local.team = Team(size)
        with _lock:
            _teams.add(team)
            teams = [team for team in _teams if team.end.alive]
            crowded = sum(team.size + 1 for team in teams) > available_cores()
            for other in teams:
                other.look(FEW_LOOKS if crowded else LOOKS)
    return team


def _forget_teams() -> None:
    """Forget the parent's teams: a forked child has their memory, but not their threads."""
    global _lock
    _lock = threading.RLock()  # another thread may have held it
    for team in _teams:
        team.end.detach()
    _teams.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_teams)


def over_range(kernel: Any, n_items: int, least: int, *arguments: Any) -> None:
    """Call ``kernel(*arguments, which, start, stop)`` on parts of ``range(n_items)``, one a thread.

    ``which`` is the part's number, from 0 and less than the thread budget; no part is shorter than
    ``least``. The kernel is a numba function without a result; no two parts may write to the same
    place. If a part fails, this raises a MemoryError: kernels raise no other errors.
    """
    count = n_parts(n_items, least)
    if count == 1:
        kernel(*arguments, 0, 0, n_items)
    else:
        share(kernel, count, count, n_items, (), arguments)


def work_over_range(kernel: Any, n_items: int, least: int, *arguments: Any) -> Callable[[], object]:
    """Bind :func:`over_range` to fixed arguments and threads; the result is called without any."""
    if n_parts(n_items, least) > 1:
        return partial(over_range, kernel, n_items, least, *arguments)
    return partial(kernel, *arguments, 0, 0, n_items)


def over_rows(
    kernel: Any, rows: tuple[Any, ...], least: int, *arguments: Any, unit: int = 1
) -> None:
    """Call ``kernel(*parts of rows, *arguments)``, one part a thread.

    ``rows`` are arrays or None, the first an array. They are cut along their first axis, which has
    the same length in all. A part begins at a multiple of ``unit`` rows and has at least ``least``
    units. Every part gets all of ``arguments``.
    """
    n_units = -(-len(rows[0]) // unit)
    count = n_parts(n_units, least)
    if count == 1:
        kernel(*rows, *arguments)
    else:
        share(kernel, count, count, n_units, rows, arguments, unit)


def share(kernel, count, n_parts, n_items, rows, arguments, unit=1) -> None:
    """Run a kernel on ``n_parts`` parts of ``n_items`` in ``count`` threads, this one included."""
    address = address_of(kernel, rows, arguments)
    slots = _team(count - 1).slots if count > 1 else 0
    drive = _body(), address, slots, count, n_parts, n_items, unit, rows, arguments
    if _drive(*drive):
        raise MemoryError(f"{kernel.__name__}: a part of it failed, which takes a lack of memory")


@cache
def _body() -> int:
    return address_of(_do_parts, (), (0, 0, 0, 0))


@jit
def _set(slot, cell, value):
    atomic_store(slot, cell, value)


@jit
def post(slot, function, kernel, arguments, which, start, stop):
    """Give a part to a slot's thread."""
    atomic_store(slot, JOB, function)
    atomic_store(slot, JOB + 1, kernel)
    atomic_store(slot, JOB + 2, arguments)
    atomic_store(slot, JOB + 3, which)
    atomic_store(slot, JOB + 4, start)
    atomic_store(slot, JOB + 5, stop)
    # Linux chooses a core only for a thread that sleeps; it must not be this one's, see signals.
    if atomic_load(slot, IDLE):
        keep_off(slot)
    # Last, since this publishes the job: a thread that sees the number sees the cells set before.
    tell(slot, POSTED, atomic_load(slot, POSTED) + 1, IDLE, AWAKE)


@jit
def _drive(body, kernel, slots, count, n_parts, n_items, unit, rows, whole):
    """Lay out the arguments, with code compiled for their types, and do a kernel's parts."""
    function, arguments = lay_out(rows, whole, unit)
    return run(body, function, kernel, arguments, slots, count, n_parts, n_items)


@jit
def _do_parts(function, kernel, arguments, slots, count, n_parts, n_items):
    """Do a kernel's parts, ``count`` at a time, in this thread and others; return failures.

    Another process may occupy a thread's core. If a thread has not begun its part when this thread
    is ready, this thread does it.
    """
    failed = 0
    for first in range(0, n_parts, count):
        last = min(n_parts, first + count)
        for i in range(first + 1, last):
            start, stop = n_items * i // n_parts, n_items * (i + 1) // n_parts
            post(slots + (i - first - 1) * SLOT, function, kernel, arguments, i, start, stop)
        start, stop = n_items * first // n_parts, n_items * (first + 1) // n_parts
        failed |= call(function, kernel, arguments, first, start, stop)
        for i in range(first + 1, last):
            do(slots + (i - first - 1) * SLOT)
        for i in range(first + 1, last):
            slot = slots + (i - first - 1) * SLOT
            wait_until(slot, DONE, atomic_load(slot, POSTED), WAITING, ENDED)
            failed |= atomic_load(slot, STATUS)
    return failed


@jit
def do(slot):
    """Do a slot's latest job, unless a thread has begun it; return False if the slot ends."""
    # The slot's thread and the poster both try to set the cell; the first does the job.
    job = atomic_load(slot, POSTED)
    if not change(slot, BEGUN, job - 1, job):
        return True
    function = atomic_load(slot, JOB)
    if function == 0:
        return False
    status = call(
        function, atomic_load(slot, JOB + 1), atomic_load(slot, JOB + 2),
        atomic_load(slot, JOB + 3), atomic_load(slot, JOB + 4), atomic_load(slot, JOB + 5),
    )  # fmt: skip
    atomic_store(slot, STATUS, status)
    tell(slot, DONE, job, WAITING, ENDED)
    return True


@jit
def _serve(slot):
    """Do the jobs of a slot that no other thread has begun, until one has no function."""
    seen, more = 0, True
    while more:
        wait_until(slot, POSTED, seen + 1, IDLE, AWAKE)
        seen = atomic_load(slot, POSTED)
        more = do(slot)


#: Most parts of a sum: further threads have nothing to do.
PARTS = 16


def n_fixed(n_items: int, least: int) -> int:
    """Return the number of parts of a range, the same for any threads; none below ``least``."""
    return max(1, min(PARTS, n_items // max(1, least)))


def over_parts(kernel: Any, n_items: int, least: int, *arguments: Any) -> None:
    """Call ``kernel(*arguments, which, start, stop)`` on parts of ``range(n_items)``.

    Unlike in :func:`over_range`, the parts are the same for any number of threads, which take them
    in turn: ``which`` is less than ``n_fixed(n_items, least)``.
    """
    parts = n_fixed(n_items, least)
    if parts == 1:
        kernel(*arguments, 0, 0, n_items)
        return
    share(kernel, min(threads(), parts), parts, n_items, (), arguments)
