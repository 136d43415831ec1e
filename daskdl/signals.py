"""Signals: Ctrl-C and SIGTERM end the main thread's work, wherever they arrive."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

AGAIN = 0.05  # seconds until a lost exception is raised again, after the callback has returned


def interrupts_not_lost() -> AbstractContextManager[None]:
    """Raise a KeyboardInterrupt again if it arrived where Python only prints it and continues.

    This happens in finalizers and callbacks, which take a good part of a compilation's time.
    """
    return _not_lost(KeyboardInterrupt, lambda: _thread.interrupt_main(signal.SIGINT))


@contextmanager
def terminated_as_exit(code: int) -> Iterator[None]:
    """Raise SystemExit(code) on the first SIGTERM, so that clusters are closed; ignore later ones.

    A handler that the program has already set stays in place.
    """
    if not _in_main_thread() or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    came: list[int] = []

    def handle(number: int, frame: Any) -> None:
        came.append(number)
        if len(came) == 1:
            raise SystemExit(code)

    def again() -> None:
        if came:  # the lost exception was ours, not a finalizer's
            came.clear()
            _thread.interrupt_main(signal.SIGTERM)

    signal.signal(signal.SIGTERM, handle)
    try:
        with _not_lost(SystemExit, again):
            yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def _not_lost(kind: type[BaseException], again: Callable[[], None]) -> Iterator[None]:
    """Call ``again`` from another thread when the main thread loses an exception of a kind."""
    if not _in_main_thread():  # signals raise only in the main thread
        yield
        return
    before, timers = sys.unraisablehook, list[threading.Timer]()

    def hook(lost: sys.UnraisableHookArgs) -> None:
        if issubclass(lost.exc_type, kind) and _in_main_thread():
            timers.append(timer := threading.Timer(AGAIN, again))
            timer.daemon = True
            try:
                timer.start()
            except kind:  # on a slow machine it is raised before this returns
                hook(lost)
        else:
            before(lost)

    sys.unraisablehook = hook
    try:
        yield
    except Exception:  # such as numba's, when the signal interrupts LLVM's callback
        for timer in timers:
            timer.join()
        raise
    finally:
        sys.unraisablehook = before


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
