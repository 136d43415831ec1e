"""Undisturbed: what of a Dask worker goes on beside its tasks, and takes their time."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

#: Milliseconds between two looks of Dask's profiler at what a worker's threads are at. By itself it
#: looks a hundred times a second, each time with Python's lock: it takes the core from one part of
#: a kernel, and the others wait for that.
PROFILED = 1000.0


def undisturbed() -> Any:
    """Return a plugin of workers with which tasks have the cores, and keep their memory.

    The profiler looks once a second, and malloc is told to keep what is freed before there are
    threads for tasks, see :func:`daskdl.kernels.runtime.memory.keep_freed`.
    """
    from distributed import WorkerPlugin

    class Undisturbed(WorkerPlugin):
        name = "daskdl-undisturbed"

        def setup(self, worker: Any) -> None:
            with suppress(ImportError):  # a worker that has no daskdl says so in its first task
                import daskdl.kernels  # noqa: F401  which tells malloc
            profiler = worker.periodic_callbacks.get("profile")
            if profiler is not None:
                profiler.callback_time = max(profiler.callback_time, PROFILED)

    return Undisturbed()
