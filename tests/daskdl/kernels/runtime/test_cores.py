"""Threads that are woken leave their waker its core."""

from __future__ import annotations

import os
import sys
import threading
import time

import numpy as np
import pytest

from daskdl.kernels.runtime import team
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.signals import IDLE, THREAD, atomic_load
from daskdl.kernels.runtime.team import over_range
from daskdl.kernels.runtime.threads import available_cores, thread_budget

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or available_cores() < 2, reason="one core, or another system"
)


@jit
def _mark(owners, which, start, stop):
    for i in range(start, stop):
        owners[i] += 1 + which


@jit
def _read(slot, cell):
    return atomic_load(slot, cell)


def _in_a_thread(work):
    """Run this with a team of its own, and raise what it raises."""
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
    """Call a kernel from a core, its thread asleep, and return where that may run then."""
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


def test_a_woken_thread_may_run_on_all_cores_but_its_wakers():
    def work():
        for core in [*cores, *cores]:
            assert _woken_from(core, cores) == cores - {core}

    cores = os.sched_getaffinity(0)
    _in_a_thread(work)


def test_it_may_run_on_its_wakers_only_core():
    def work():
        assert _woken_from(core, {core}) == {core}

    core = min(os.sched_getaffinity(0))
    _in_a_thread(work)
