"""Cores of woken threads, memory that kernels use again, and passes over vectors."""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from daskdl.kernels.runtime import memory, team
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.memory import LARGE, scratch
from daskdl.kernels.runtime.passes import UNIT, drain, flat, one_pass, put
from daskdl.kernels.runtime.signals import IDLE, THREAD
from daskdl.kernels.runtime.team import over_range
from daskdl.kernels.runtime.threads import available_cores, thread_budget
from tests.daskdl.gradients import layouts
from tests.daskdl.kernels.runtime.test_team import _mark, _read


def _in_a_thread(work):
    """Run a function in a new thread, which has a new team, and raise its error."""
    errors = []

    def caught():
        try:
            with thread_budget(2):
                work()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=caught)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]


def _woken_from(core, cores):
    """Call a kernel from a core while its thread sleeps, and return that thread's cores."""
    os.sched_setaffinity(0, {core})
    over_range(_mark, 2, 1, np.zeros(2, np.int64))
    slot = team._local.team.slots
    limit = time.monotonic() + 30
    while not _read(slot, IDLE):
        assert time.monotonic() < limit, "the thread does not go to sleep"
        time.sleep(0.01)
    os.sched_setaffinity(0, cores)
    over_range(_mark, 2, 1, np.zeros(2, np.int64))
    return os.sched_getaffinity(_read(slot, THREAD))


@pytest.mark.skipif(
    sys.platform != "linux" or available_cores() < 2, reason="one core, or another system"
)
def test_a_woken_thread_may_run_on_all_cores_but_its_wakers_unless_that_is_the_only_one():
    def on_all():
        for core in [*cores, *cores]:
            assert _woken_from(core, cores) == cores - {core}

    def on_one():
        assert _woken_from(min(cores), {min(cores)}) == {min(cores)}

    cores = os.sched_getaffinity(0)
    _in_a_thread(on_all)
    _in_a_thread(on_one)


def test_the_same_name_has_the_same_memory_in_any_shape_that_fits():
    first = scratch("test", (3, 4), np.float64)
    assert first.shape == (3, 4)
    second = scratch("test", (5,), np.float32)
    assert second.dtype == np.float32
    assert np.shares_memory(first, second)
    assert not np.shares_memory(second, scratch("another test", (5,), np.float32))


def test_scratch_grows():
    scratch("growing", (2,), np.float32)
    large = scratch("growing", (1000,), np.float32)
    assert large.shape == (1000,)
    assert np.shares_memory(large, scratch("growing", (2,), np.float32))  # not the old one
    assert scratch("growing", (0, 7), np.float32).shape == (0, 7)


def test_scratch_begins_at_a_cache_line():
    arrays = [scratch(f"aligned {n}", (n,), np.uint8) for n in (1, 100, 5000, 3 << 20)]
    assert not any(array.ctypes.data % 64 for array in arrays)


def test_the_old_memory_is_gone_before_there_is_new(monkeypatch):
    old = weakref.ref(scratch("changing", (10,), np.uint8).base)
    gone = []
    make = np.empty
    monkeypatch.setattr(np, "empty", lambda *a: gone.append(old() is None) or make(*a))
    scratch("changing", (1000,), np.uint8)
    assert gone == [True]


def test_every_thread_has_its_own_scratch():
    mine = scratch("test", (3,), np.float32)
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(scratch, "test", (3,), np.float32).result()
    assert not np.shares_memory(mine, other)


def test_the_same_shape_is_the_same_array_and_few_are_kept(monkeypatch):
    assert scratch("kept", (9,), np.float32) is scratch("kept", (9,), np.float32)
    assert scratch("kept", (9,), np.float32) is not scratch("kept", (9,), np.float64)
    monkeypatch.setattr(memory, "VIEWS", 3)
    shapes = [scratch("kept", (n,), np.float32).shape for n in range(9)]
    assert shapes == [(n,) for n in range(9)]
    assert len(memory._kept.__dict__["kept"][1]) <= 3


@jit
def both(x, y, total, difference, factors, past):
    for k in range(x.size):
        put(total, k, x[k] + factors[0] * y[k], past)
        put(difference, k, x[k] - factors[0] * y[k], past)
    drain(past)


@pytest.mark.slow
@pytest.mark.parametrize("n", [0, 1, UNIT, 100 * UNIT + 5, LARGE // 4 + 9])
@pytest.mark.parametrize("threads", [1, 2])
def test_all_elements_of_all_results(n, threads):
    x, y = np.random.default_rng(0).random((2, n), np.float32)
    with thread_budget(threads):
        total, difference = one_pass(both, x, y, settings=np.array([2], "f4"), results=2)
    np.testing.assert_allclose(total, x + 2 * y, rtol=1e-6)
    np.testing.assert_allclose(difference, x - 2 * y, rtol=1e-6, atol=1e-6)


def test_any_layout_of_its_inputs_is_right_and_compiles_once():
    rng = np.random.default_rng(0)
    x, y = rng.random((2, 6, 5), np.float32)
    factors = np.array([1], "f4")
    one_pass(both, x, y, settings=factors, results=2)
    compiled = len(both.signatures)
    for pair in zip(layouts(x), layouts(y), strict=True):
        total, _ = one_pass(both, *pair, settings=factors, results=2)
        np.testing.assert_allclose(total, x + y, rtol=1e-6)
    assert len(both.signatures) == compiled


def test_flat_is_a_view_that_cannot_be_written():
    x = np.zeros((2, 3))
    vector = flat(x)
    assert np.shares_memory(vector, x)
    assert not vector.flags.writeable
    assert x.flags.writeable
