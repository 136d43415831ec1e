"""The thread budget: how many threads BLAS, numba and numexpr may use, set in one place.

A Dask Nanny exports ``OMP_NUM_THREADS=1``; without a Nanny every library uses all cores. Neither is
the worker's number of threads. Inside ``with thread_budget(n)`` matrix products of numpy use ``n``
threads, and kernels cut their work into ``n`` parts (:mod:`daskdl.kernels.runtime.team`).
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import threadpoolctl

from daskdl.errors import SettingsError
from daskdl.kernels.runtime.mkl import set_local_threads

#: Least floating-point operations of a part: with fewer, a second thread costs more than it saves.
PART = 2e6
#: Value of the environment variable when this module was imported.
_OMP_NUM_THREADS = os.environ.get("OMP_NUM_THREADS", "")

_local = threading.local()


def available_cores() -> int:
    """Return the number of cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def granted_cores() -> int:
    """Return the number of cores for this process: ``OMP_NUM_THREADS``, or all it may run on.

    joblib, Dask's Nanny and job scripts set the variable if several processes share a machine. As
    in OpenMP, its value at the import of daskdl counts: a ``LocalCluster`` leaves its workers' 1 in
    the environment of the process that starts it.
    """
    asked = _OMP_NUM_THREADS.partition(",")[0].strip()
    cores = available_cores()
    return min(cores, int(asked)) if asked.isdigit() and int(asked) else cores


def threads() -> int:
    """Return the current thread's budget; without one, the cores this process may run on."""
    return getattr(_local, "budget", None) or available_cores()


@contextmanager
def thread_budget(n: int) -> Iterator[None]:
    """Let the code inside use ``n`` threads, at least 1, for its arithmetic.

    OpenBLAS has one number of threads for the process. If two Dask threads have different budgets,
    the latest counts for both: this changes their speed, not their results. The last budget to end
    restores the number from before the first.
    """
    if n < 1:
        raise SettingsError(f"thread_budget: expected at least 1 thread, found {n}")
    before = getattr(_local, "budget", None)
    if before == n and _process.latest == n:
        yield  # nothing to change
        return
    _local.budget = n
    mkls = set_local_threads(n)
    try:
        with _process.limited(n):
            yield
    finally:
        _local.budget = before
        set_local_threads(mkls)


class _Process:
    """The numbers of BLAS and numexpr threads while any thread has a budget."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._budgets: list[list[int]] = []
        self._before: dict[Any, int] = {}

    @property
    def latest(self) -> int | None:
        """The latest budget, of any thread."""
        budgets = self._budgets
        return budgets[-1][0] if budgets else None

    @contextmanager
    def limited(self, n: int) -> Iterator[None]:
        mine = [n]  # a list, to find this one again among equals
        with self._lock:
            self._budgets.append(mine)
            self._set(n)
        try:
            yield
        finally:
            with self._lock:
                self._budgets = [other for other in self._budgets if other is not mine]
                if self._budgets:
                    self._set(self._budgets[-1][0])
                else:
                    for library, number in self._before.items():
                        set_threads(library, number)
                    self._before.clear()

    def _set(self, n: int) -> None:
        for library in _blas_of_numpy().lib_controllers:
            self._before.setdefault(library, library.get_num_threads())
            set_threads(library, n)
        numexpr = sys.modules.get("numexpr")  # if it is not loaded, nothing computes with it
        if numexpr is not None:
            self._before.setdefault(numexpr, numexpr.get_num_threads())
            set_threads(numexpr, n)


_process = _Process()


def set_threads(library: Any, n: int) -> None:
    """Set the threads of a library that threadpoolctl found, or of numexpr, from any thread.

    Since threadpoolctl 3.8, the first thread that sets OpenBLAS's number silently prevents all
    others from setting it; on a Dask worker, that is the thread of the first task.
    """
    release = getattr(library, "clear_controlling_thread", lambda force: None)
    release(force=True)
    library.set_num_threads(n)
    release(force=True)


@cache
def _blas_of_numpy() -> threadpoolctl.ThreadpoolController:
    controller = threadpoolctl.ThreadpoolController()
    # MKL has a number for each thread, see set_local_threads.
    others = [one.filepath for one in controller.lib_controllers if one.internal_api != "mkl"]
    return controller.select(filepath=others)


def n_parts(n_items: int, least: int = 1) -> int:
    """Return the number of parts of ``range(n_items)``: one a thread, none below ``least``."""
    return max(1, min(threads(), n_items // max(1, least))) if n_items >= 2 * least else 1


def least_of(operations: float) -> int:
    """Return the least number of items of a part, from an item's floating-point operations.

    Handing a part to another thread and waiting for its end take a few microseconds.
    """
    return max(1, round(PART / max(1.0, operations)))


def cut_rows(
    count: int, length: int, unit: int, least: int, panels: int
) -> tuple[int, int, int]:  # fmt: skip
    """Return the number of parts of ``count`` rows, their length, and threads that share panels.

    A length is a multiple of ``unit``, and at least about ``least`` if threads share the rows.
    """
    parts = max(-(-count // length), min(threads(), -(-count // least)))
    length = -(-count // (parts * unit)) * unit
    parts = -(-count // length)
    # Few rows: threads share the panels, and each takes all rows.
    return parts, length, max(1, min(panels, threads())) if parts < threads() else 1
