"""Interrupts: Ctrl-C reaches all processes of a terminal, and is for the driver alone."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distributed import Client


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
    held = handler is not None and threading.current_thread() is threading.main_thread()
    if held:
        signal.signal(signal.SIGINT, lambda *_: came.append(True))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if held:
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
