"""Workers of a cluster that is started: their configuration, cores, and Ctrl-C."""

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

# Compression costs time and float32 does not compress. A shard stays where its partition lies.
CONFIG = {
    "distributed.comm.compression": False,
    "distributed.scheduler.work-stealing": False,
    "distributed.worker.connections.incoming": 1000,
    # Dask gives up a worker for good that is just starting again 15 s after it was lost before.
    "distributed.deploy.lost-worker-timeout": "1 day",
}

# A job that is lost has left the queue: after this time another is put there in its place.
QUEUE_CONFIG = {**CONFIG, "distributed.deploy.lost-worker-timeout": "60 s"}

#: The setting by which Dask takes a worker that is silent for dead, and what it is by itself.
TTL, DASKS_TTL = "distributed.scheduler.worker-ttl", "5 minutes"


def patience() -> dict[str, Any]:
    """Return the setting of Dask's worker-ttl: its own tasks wait that long for a silent worker.

    Lazy predictions are such tasks; engines of a fit find such a worker sooner themselves. A
    setting of the user's own is kept.
    """
    return {TTL: "1 minute"} if dask.config.get(TTL, DASKS_TTL) == DASKS_TTL else {}


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


#: Folder in which Linux lists the nodes.
NODES = Path("/sys/devices/system/node")


def nodes(folder: Path = NODES) -> list[list[int]]:
    """Return for each node those of its cores that this process may run on.

    Nodes without any are left out. Where the system does not tell, all cores are one node.
    """
    allowed = _allowed()
    cores_of_nodes = []
    for path in sorted(folder.glob("node[0-9]*/cpulist"), key=lambda p: int(p.parent.name[4:])):
        cores = sorted(allowed & set(_cores(path.read_text())))
        if cores:
            cores_of_nodes.append(cores)
    return cores_of_nodes or [sorted(allowed)]


def keeping(cores: list[list[int]]) -> Any:
    """Return a plugin that keeps each worker of "local" to a node, by its number."""
    from distributed import WorkerPlugin

    class KeepToNode(WorkerPlugin):
        name = "daskdl-numa"

        def setup(self, worker: Any) -> None:
            for thread in os.listdir("/proc/self/task"):  # and so those to come
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
    """Let Ctrl-C come at the end of this, and not to threads and processes that start here.

    These would end in the middle of their imports, with a traceback each, and leave a cluster that
    is not quite there.
    """
    # Of multiprocessing: it is started with the first process, and leaves SIGINT let through.
    resource_tracker.ensure_running()
    handler, came = signal.getsignal(signal.SIGINT), []
    # What this thread has blocked goes to another thread, and Python raises it here all the same.
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
    """Return a plugin of workers with which they ignore Ctrl-C, also those that start later.

    That goes for processes which Ctrl-C in the driver's terminal reaches, as those of a
    LocalCluster: on its machine, in its group of processes.
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
