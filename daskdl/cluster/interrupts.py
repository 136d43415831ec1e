"""Interrupts: Ctrl-C reaches all processes of a terminal, and is for the driver alone."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any


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
    """Return a plugin of workers with which they ignore Ctrl-C, also those that start later."""
    from distributed import WorkerPlugin

    class InterruptsAreTheDrivers(WorkerPlugin):
        """Ignores SIGINT."""

        def setup(self, worker: Any) -> None:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    return InterruptsAreTheDrivers()
