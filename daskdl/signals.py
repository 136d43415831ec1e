"""Signals: Ctrl-C and SIGTERM end the main thread's work wherever in it they come."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

AGAIN = 0.05  # seconds until a lost exception comes again, when what lost it has returned


def interrupts_not_lost() -> AbstractContextManager[None]:
    """Raise a KeyboardInterrupt again that came where Python only prints it and goes on.

    That is in finalizers and callbacks, which are a good part of a compilation's seconds.
    """
    return _not_lost(KeyboardInterrupt, lambda: _thread.interrupt_main(signal.SIGINT))


@contextmanager
def terminated_as_exit(code: int) -> Iterator[None]:
    """Have the first SIGTERM raise SystemExit(code), so that clusters are closed, no second one.

    Whoever handles or ignores the signal already goes on to do so.
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
        if came:  # what was lost was not a finalizer's own
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
    """Call ``again`` from another thread when the main one has lost an exception of a kind."""
    if not _in_main_thread():  # where signals raise nothing
        yield
        return
    before, timers = sys.unraisablehook, list[threading.Timer]()

    def hook(lost: sys.UnraisableHookArgs) -> None:
        if issubclass(lost.exc_type, kind) and _in_main_thread():
            timers.append(timer := threading.Timer(AGAIN, again))
            timer.daemon = True
            try:
                timer.start()
            except kind:  # on a slow machine it comes again before this returns
                hook(lost)
        else:
            before(lost)

    sys.unraisablehook = hook
    try:
        yield
    except Exception:  # such as numba's that LLVM's callback, where the signal came, kept no code
        for timer in timers:
            timer.join()
        raise
    finally:
        sys.unraisablehook = before


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
