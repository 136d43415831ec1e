"""Workers of a new cluster: their configuration, cores, and Ctrl-C."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask

if TYPE_CHECKING:
    from distributed import Client

# Compression costs time, and float32 hardly compresses. A shard stays with its partition.
CONFIG = {
    "distributed.comm.compression": False,
    "distributed.scheduler.work-stealing": False,
    "distributed.worker.connections.incoming": 1000,
    # Otherwise Dask gives up a worker that is still restarting 15 s after it was lost.
    "distributed.deploy.lost-worker-timeout": "1 day",
}

# A lost job has left the queue: after this time a new job replaces it.
QUEUE_CONFIG = {**CONFIG, "distributed.deploy.lost-worker-timeout": "60 s"}

#: Dask's setting for the silence after which a worker counts as dead, and its default.
TTL, DASKS_TTL = "distributed.scheduler.worker-ttl", "5 minutes"


def patience() -> dict[str, Any]:
    """Return the setting of Dask's worker-ttl: how long plain tasks wait for a silent worker.

    Lazy predictions are such tasks; engines of a fit find a silent worker sooner. A setting of the
    user is kept.
    """
    return {TTL: "1 minute"} if dask.config.get(TTL, DASKS_TTL) == DASKS_TTL else {}


#: Milliseconds between two samples of Dask's profiler. By default it samples a worker's threads a
#: hundred times a second, each time with Python's lock. This takes the core of one thread of a
#: kernel, and the others wait for it.
PROFILED = 1000.0


def undisturbed() -> Any:
    """Return a worker plugin for undisturbed tasks: a slow profiler, and memory that is kept.

    The profiler samples once a second. malloc is set to keep freed memory before there are threads
    for tasks, see :func:`daskdl.kernels.runtime.memory.keep_freed`.
    """
    from distributed import WorkerPlugin

    class Undisturbed(WorkerPlugin):
        name = "daskdl-undisturbed"

        def setup(self, worker: Any) -> None:
            with suppress(ImportError):  # without daskdl, the worker's first task raises the error
                import daskdl.kernels  # noqa: F401  it configures malloc
            profiler = worker.periodic_callbacks.get("profile")
            if profiler is not None:
                profiler.callback_time = max(profiler.callback_time, PROFILED)

    return Undisturbed()


#: Folder in which Linux lists the NUMA nodes.
NODES = Path("/sys/devices/system/node")


def nodes(folder: Path = NODES) -> list[list[int]]:
    """Return for each NUMA node the cores that this process may use.

    Nodes without such cores are left out. If the system lists no nodes, all cores are one node.
    """
    allowed = _allowed()
    cores_of_nodes = []
    for path in sorted(folder.glob("node[0-9]*/cpulist"), key=lambda p: int(p.parent.name[4:])):
        cores = sorted(allowed & set(_cores(path.read_text())))
        if cores:
            cores_of_nodes.append(cores)
    return cores_of_nodes or [sorted(allowed)]


def keeping(cores: list[list[int]]) -> Any:
    """Return a plugin that binds each worker of "local" to the cores of a node, by its number."""
    from distributed import WorkerPlugin

    class KeepToNode(WorkerPlugin):
        name = "daskdl-numa"

        def setup(self, worker: Any) -> None:
            for thread in os.listdir("/proc/self/task"):  # later threads inherit it
                os.sched_setaffinity(int(thread), cores[int(worker.name) % len(cores)])

    return KeepToNode()


def _allowed() -> set[int]:
    if hasattr(os, "sched_getaffinity"):
        return set(os.sched_getaffinity(0))
    return set(range(os.cpu_count() or 1))


def _cores(text: str) -> list[int]:
    """Return the numbers of a list such as 0-3,8-11."""
    cores: list[int] = []
    for part in text.strip().split(","):
        if part:
            first, _, last = part.partition("-")
            cores += range(int(first), int(last or first) + 1)
    return cores


@contextmanager
def interrupts_later() -> Iterator[None]:
    """Delay Ctrl-C until the end, and block it in threads and processes that start meanwhile.

    These would end in the middle of their imports, with a traceback each, and leave an incomplete
    cluster.
    """
    # multiprocessing starts its tracker with the first process, and then unblocks SIGINT.
    resource_tracker.ensure_running()
    handler, came = signal.getsignal(signal.SIGINT), []
    # A signal that this thread blocks goes to another thread, and Python still raises it here.
    delayed = handler is not None and threading.current_thread() is threading.main_thread()
    if delayed:
        signal.signal(signal.SIGINT, lambda *_: came.append(True))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if delayed:
            signal.signal(signal.SIGINT, handler)
        if came:
            signal.raise_signal(signal.SIGINT)


def interrupts_are_the_drivers() -> Any:
    """Return a worker plugin that ignores Ctrl-C, also on workers that start later.

    It acts in processes that Ctrl-C in the driver's terminal reaches, such as those of a
    LocalCluster: on the driver's machine, in its process group.
    """
    from distributed import WorkerPlugin

    class InterruptsAreTheDrivers(WorkerPlugin):
        """Ignores SIGINT."""

        name = "daskdl-interrupts-are-the-drivers"
        idempotent = True

        def __init__(self) -> None:
            self.group, self.driver = (socket.gethostname(), os.getpgrp()), os.getpid()

        def setup(self, worker: Any) -> None:
            reached = (socket.gethostname(), os.getpgrp()) == self.group
            main = threading.current_thread() is threading.main_thread()
            if reached and main and os.getpid() != self.driver:
                signal.signal(signal.SIGINT, signal.SIG_IGN)

    return InterruptsAreTheDrivers()


def are_reached(client: Client) -> bool:
    """Return whether Ctrl-C in the driver's terminal reaches the workers of a client."""
    from distributed import LocalCluster

    return isinstance(client.cluster, LocalCluster)
