"""A kernel's parts, done by the thread that calls and by its team."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.kernels.runtime import team
from daskdl.kernels.runtime.calls import address_of
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.signals import CELLS, FEW_LOOKS, LOOKS, PATIENCE, atomic_load
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
def _sleeves(order, which, start, stop):
    total = 0.0
    for i in range(20_000_000 if which else 1):
        total += np.sqrt(i)
    order[which] = total


@pytest.mark.slow
def test_the_caller_waits_for_all_parts():
    order = np.zeros(3)
    with thread_budget(3):
        over_range(_sleeves, 3, 1, order)
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
