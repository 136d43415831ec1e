"""Signals between threads that run no Python: none is lost, whether the other sleeps or looks."""

from __future__ import annotations

import ctypes
import threading
import time

import numpy as np
import pytest

from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.signals import (
    AWAKE,
    CELLS,
    DONE,
    ENDED,
    IDLE,
    MUTEX,
    PATIENCE,
    POSTED,
    WAITING,
    atomic_load,
    atomic_store,
    tell,
    wait_until,
)


@pytest.fixture
def slot():
    memory = np.zeros(2 * CELLS, np.int64)
    address = memory.ctypes.data + -memory.ctypes.data % 64
    c = ctypes.CDLL(None)
    c.pthread_mutex_init(ctypes.c_void_p(address + 8 * MUTEX), None)
    for condition in (AWAKE, ENDED):
        c.pthread_cond_init(ctypes.c_void_p(address + 8 * condition), None)
    memory[(address - memory.ctypes.data) // 8 + PATIENCE] = 1000
    yield address
    del memory


@jit
def _echo(slot, times):
    for i in range(1, times + 1):
        wait_until(slot, POSTED, i, IDLE, AWAKE)
        tell(slot, DONE, i, WAITING, ENDED)


@jit
def _ask(slot, times, pause):
    for i in range(1, times + 1):
        tell(slot, POSTED, i, IDLE, AWAKE)
        for k in range(
            i * 7919 % (pause + 1)
        ):  # so that the other sleeps, looks or just falls asleep
            atomic_store(slot, 30, k)
        wait_until(slot, DONE, i, WAITING, ENDED)


@pytest.mark.slow
@pytest.mark.parametrize("pause", [0, 100_000])
def test_no_signal_is_lost(slot, pause):
    times = 20_000 if not pause else 2_000
    other = threading.Thread(target=_echo, args=(slot, times), daemon=True)
    other.start()
    _ask(slot, times, pause)
    other.join(60)
    assert not other.is_alive()
    assert _read(slot, DONE) == _read(slot, POSTED) == times


def test_who_waits_long_sleeps(slot):
    other = threading.Thread(target=_echo, args=(slot, 1), daemon=True)
    other.start()
    deadline = time.monotonic() + 60
    while not _read(slot, IDLE) and time.monotonic() < deadline:
        time.sleep(0.01)
    begin = time.process_time()
    time.sleep(0.2)
    assert time.process_time() - begin < 0.15
    _ask(slot, 1, 0)
    other.join(60)
    assert not other.is_alive()


@jit
def _read(slot, cell):
    return atomic_load(slot, cell)
