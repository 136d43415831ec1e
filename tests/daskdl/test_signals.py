from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from daskdl.console import application, run
from daskdl.signals import interrupts_not_lost, terminated_as_exit


@contextmanager
def during_a_collection(number: int) -> Iterator[None]:
    """Have a signal come in a callback of the next garbage collection."""

    def callback(phase: str, info: dict[str, Any]) -> None:
        if phase == "start":
            gc.callbacks.remove(callback)
            os.kill(os.getpid(), number)
            time.sleep(0.01)

    gc.callbacks.append(callback)
    try:
        yield
    finally:
        if callback in gc.callbacks:
            gc.callbacks.remove(callback)


def collect_and_go_on() -> None:
    gc.collect()
    end = time.monotonic() + 10
    while time.monotonic() < end:
        time.sleep(0.01)


@pytest.mark.slow
def test_an_interruption_in_a_garbage_collection_is_not_lost() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # others may have set one
    try:
        with (
            pytest.raises(KeyboardInterrupt),
            interrupts_not_lost(),
            during_a_collection(signal.SIGINT),
        ):
            collect_and_go_on()
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.slow
def test_a_termination_in_a_garbage_collection_is_not_lost() -> None:
    with (
        pytest.raises(SystemExit) as end,
        terminated_as_exit(143),
        during_a_collection(signal.SIGTERM),
    ):
        collect_and_go_on()
    assert end.value.code == 143
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_error_after_a_lost_signal_is_that_signal(number: int, code: int) -> None:
    app = application("a", "A program.")

    @app.command()
    def command() -> None:
        ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(number))()
        raise RuntimeError  # as numba does when its callback from LLVM was cut short

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert run(app, ["command"]) == code
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_finalizer_that_exits_ends_nothing() -> None:
    class Exits:
        def __del__(self) -> None:
            raise SystemExit(1)

    with terminated_as_exit(143):
        Exits()
        time.sleep(0.2)


def test_other_lost_errors_go_to_the_previous_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    lost: list[type[BaseException]] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: lost.append(args.exc_type))
    hook = sys.unraisablehook

    class Faulty:
        def __del__(self) -> None:
            raise ZeroDivisionError

    with interrupts_not_lost(), terminated_as_exit(143):
        Faulty()
    assert lost == [ZeroDivisionError]
    assert sys.unraisablehook is hook
