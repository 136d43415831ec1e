"""Parts of a kernel, called by its address, in the calling thread and in its team."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba.core.errors import NumbaError

from daskdl.kernels.runtime import team
from daskdl.kernels.runtime.calls import address_of, call, lay_out
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.signals import (
    AWAKE,
    CELLS,
    DONE,
    ENDED,
    FEW_LOOKS,
    IDLE,
    LOOKS,
    MUTEX,
    PATIENCE,
    POSTED,
    WAITING,
    atomic_load,
    atomic_store,
    tell,
    wait_until,
)
from daskdl.kernels.runtime.team import over_range, over_rows
from daskdl.kernels.runtime.threads import n_parts, thread_budget


@jit
def _mark(owners, which, start, stop):
    for i in range(start, stop):
        owners[i] += 1 + which


@given(n=st.integers(0, 40), least=st.integers(1, 20), budget=st.integers(1, 5))
def test_every_item_is_in_one_part(n, least, budget):
    owners = np.zeros(n, np.int64)
    with thread_budget(budget):
        over_range(_mark, n, least, owners)
        count = n_parts(n, least)
    lengths = np.bincount(owners - 1, minlength=count)
    assert count == max(1, min(budget, n // least))
    assert owners.tolist() == sorted(owners)
    assert max(lengths) - min(lengths) <= 1


@jit
def _scale(x, y, factor):
    for i in range(x.shape[0]):
        y[i] += factor * x[i]


@given(
    n=st.integers(1, 100), least=st.integers(1, 9), unit=st.integers(1, 9), budget=st.integers(1, 5)
)
def test_every_row_is_in_one_part(n, least, unit, budget):
    x, y = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
    with thread_budget(budget):
        over_rows(_scale, (x, y), least, np.float32(3), unit=unit)
    np.testing.assert_array_equal(y, 3 * x)


@jit
def _slow(order, which, start, stop):
    total = 0.0
    for i in range(20_000_000 if which else 1):
        total += np.sqrt(i)
    order[which] = total


@pytest.mark.slow
def test_the_caller_waits_for_all_parts():
    order = np.zeros(3)
    with thread_budget(3):
        over_range(_slow, 3, 1, order)
    assert order[1] == order[2] > 0


def test_threads_that_call_at_once_have_teams_of_their_own():
    results = np.zeros((4, 10_000), np.int64)

    def work(mine):
        with thread_budget(2):
            for _ in range(50):
                over_range(_mark, mine.size, 1, mine)

    callers = [threading.Thread(target=work, args=(mine,)) for mine in results]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert (results[:, :5000] == 50).all()
    assert (results[:, 5000:] == 100).all()


def test_parts_that_nobody_has_begun_are_done_by_the_caller_and_by_nobody_else_after():
    memory = np.zeros(3 * CELLS, np.int64)
    slots = memory.ctypes.data + -memory.ctypes.data % 64  # of two threads that have no core
    owners = np.zeros(9, np.int64)
    kernel = address_of(_mark, (), (owners,))
    assert team._drive(team._body(), kernel, slots, 3, 3, 9, 1, (), (owners,)) == 0
    assert owners.tolist() == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    late = threading.Thread(target=team._work, args=(memory, slots), daemon=True)
    late.start()
    team.post(slots, 0, 0, 0, 0, 0, 0)
    late.join(60)
    assert not late.is_alive()
    assert owners.tolist() == [1, 1, 1, 2, 2, 2, 3, 3, 3]


def test_no_part_is_done_twice_where_threads_and_caller_come_at_the_same_time():
    owners = np.zeros(8, np.int64)
    with thread_budget(4):
        for _ in range(5000):
            over_range(_mark, 8, 1, owners)
    assert (owners // 5000).tolist() == [1, 1, 2, 2, 3, 3, 4, 4]
    assert not (owners % 5000).any()


@jit
def _fails(which, start, stop):
    if which == 1:
        raise ValueError("no")


def test_a_part_that_fails_is_an_error_and_the_team_lives_on():
    with thread_budget(2):
        with pytest.raises(MemoryError, match="_fails: a part of it failed"):
            over_range(_fails, 2, 1)
        owners = np.zeros(2, np.int64)
        over_range(_mark, 2, 1, owners)
    assert owners.tolist() == [1, 2]


@pytest.mark.slow
def test_a_team_ends_with_the_thread_that_made_it():
    def work():
        with thread_budget(3):
            over_range(_mark, 6, 1, np.zeros(6, np.int64))
        helpers.extend(team._local.team.end.peek()[2][1])

    helpers: list[threading.Thread] = []
    maker = threading.Thread(target=work)
    maker.start()
    maker.join()
    gc.collect()
    for helper in helpers:
        helper.join(60)
    assert [helper.is_alive() for helper in helpers] == [False, False]


FORKS = """
import os, numpy as np
from tests.daskdl.kernels.runtime.test_team import _mark
from daskdl.kernels.runtime.team import over_range
from daskdl.kernels.runtime.threads import thread_budget
def use():
    owners = np.zeros(4, np.int64)
    with thread_budget(2):
        over_range(_mark, 4, 1, owners)
    assert owners.tolist() == [1, 1, 2, 2]
use()
child = os.fork()
use()
if child == 0:
    raise SystemExit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_makes_its_own_team_and_both_processes_end():
    run = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKS]
    subprocess.run(run, check=True, timeout=120)


def test_a_team_grows_with_the_budget():
    def work():
        for budget in (2, 4, 3):
            with thread_budget(budget):
                over_range(_mark, 8, 1, owners)
            sizes.append(team._local.team.size)

    owners, sizes = np.zeros(8, np.int64), []
    maker = threading.Thread(target=work)
    maker.start()
    maker.join()
    assert sizes == [1, 3, 3]
    assert owners.tolist() == [3, 3, 5, 5, 7, 8, 9, 9]


@jit
def _read(slot, cell):
    return atomic_load(slot, cell)


@pytest.mark.parametrize(("cores", "expected"), [(2, LOOKS), (1, FEW_LOOKS)])
def test_where_threads_outnumber_cores_they_sleep_soon(cores, expected, monkeypatch):
    def work():
        with thread_budget(2):
            over_range(_mark, 2, 1, np.zeros(2, np.int64))
        looks.append(_read(team._local.team.slots, PATIENCE))

    monkeypatch.setattr(team, "available_cores", lambda: cores)
    monkeypatch.setattr(team, "_teams", weakref.WeakSet())
    looks: list[int] = []
    maker = threading.Thread(target=work)
    maker.start()
    maker.join()
    assert looks == [expected]


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
    a, result = np.arange(42.0).reshape(7, 3, 2)[:, ::2], np.zeros(7)
    a.flags.writeable = writeable
    expected = result.copy()
    here = slice(unit * start, unit * stop)
    _rows.py_func(a[here], None, expected[here], 2.0)
    assert run(_rows, (a, None, result), (2.0,), unit, 0, start, stop) == 0
    np.testing.assert_array_equal(result, expected)


@jit
def _fails_later(out, which, start, stop):
    if start:
        raise ValueError("no")


def test_a_part_that_fails_returns_an_error():
    assert run(_fails_later, (), (np.zeros(1),), 1, 0, 0, 1) == 0
    assert run(_fails_later, (), (np.zeros(1),), 1, 0, 1, 2) != 0


def test_an_address_depends_on_the_arguments_types():
    one = address_of(_rows, (np.zeros((1, 1)), None, np.zeros(1)), (1.0,))
    assert one == address_of(_rows, (np.ones((5, 5)), None, np.zeros(5)), (2.0,))
    assert one != address_of(_rows, (np.zeros((1, 1), np.float32), None, np.zeros(1)), (1.0,))


def test_numbers_of_another_byte_order_are_refused():
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
        for k in range(i * 7919 % (pause + 1)):  # the other sleeps, looks or falls asleep
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


def test_a_thread_that_waits_long_sleeps(slot):
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
