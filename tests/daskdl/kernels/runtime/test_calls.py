"""Kernels called by their address get what they would get from Python."""

from __future__ import annotations

import ctypes
import threading
import time

import numpy as np
import pytest
from numba.core.errors import NumbaError

from daskdl.kernels.runtime.calls import address_of, call, lay_out
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


@jit
def _by_address(kernel, rows, whole, unit, which, start, stop):
    function, arguments = lay_out(rows, whole, unit)
    return call(function, kernel, arguments, which, start, stop)


def run(kernel, rows, whole, unit=1, which=0, start=0, stop=0):
    address = address_of(kernel, rows, whole)
    return _by_address(address, rows, whole, unit, which, start, stop)


@jit
def _all(nothing, table, number, pair, flag, out, which, start, stop):
    assert nothing is None
    out[0], out[1], out[2] = which, start, stop
    out[3] = table[1, 2] + number + pair[0] * pair[1] + (1 if flag else 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arguments_of_all_kinds_arrive(dtype):
    table, out = np.arange(6, dtype=dtype).reshape(2, 3), np.zeros(4)
    assert run(_all, (), (None, table, dtype(0.5), (3, 4), True, out), 1, 7, 8, 9) == 0
    np.testing.assert_array_equal(out, [7, 8, 9, 5 + 0.5 + 12 + 1])


@jit
def _rows(a, none, b, scale):
    for i in range(a.shape[0]):
        b[i] += scale * a[i].sum() + a.size


@pytest.mark.slow
@pytest.mark.parametrize("writeable", [True, False])
@pytest.mark.parametrize(
    ("unit", "start", "stop"), [(1, 0, 7), (1, 2, 5), (3, 1, 2), (3, 2, 4), (3, 3, 4)]
)
def test_parts_of_arrays_are_slices(unit, start, stop, writeable):
    a, found = np.arange(42.0).reshape(7, 3, 2)[:, ::2], np.zeros(7)
    a.flags.writeable = writeable
    expected = found.copy()
    here = slice(unit * start, unit * stop)
    _rows.py_func(a[here], None, expected[here], 2.0)
    assert run(_rows, (a, None, found), (2.0,), unit, 0, start, stop) == 0
    np.testing.assert_array_equal(found, expected)


@jit
def _fails(out, which, start, stop):
    if start:
        raise ValueError("no")


def test_a_failure_is_told():
    assert run(_fails, (), (np.zeros(1),), 1, 0, 0, 1) == 0
    assert run(_fails, (), (np.zeros(1),), 1, 0, 1, 2) != 0


def test_an_address_is_of_the_arguments_types():
    one = address_of(_rows, (np.zeros((1, 1)), None, np.zeros(1)), (1.0,))
    assert one == address_of(_rows, (np.ones((5, 5)), None, np.zeros(5)), (2.0,))
    assert one != address_of(_rows, (np.zeros((1, 1), np.float32), None, np.zeros(1)), (1.0,))


def test_numbers_of_another_byte_order_are_not_taken_for_this_machines():
    native = np.ones(2)
    address_of(_rows, (np.ones((2, 3)), None, native), (1.0,))
    with pytest.raises(NumbaError, match="Unsupported array dtype"):
        address_of(
            _rows, (np.ones((2, 3)), None, native.astype(native.dtype.newbyteorder())), (1.0,)
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
