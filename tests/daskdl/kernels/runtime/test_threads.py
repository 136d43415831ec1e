"""The thread budget: who may use how many threads, and how work is cut."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import threadpoolctl

from daskdl.errors import SettingsError
from daskdl.kernels.runtime import threads as module
from daskdl.kernels.runtime.threads import (
    available_cores,
    n_parts,
    thread_budget,
    threads,
)


def blas_threads() -> set[int]:
    """Return the numbers of threads of numpy's BLAS.

    MKL, which has a number for each thread, and the BLAS of other packages do not count.
    """
    return {
        library["num_threads"]
        for library in threadpoolctl.threadpool_info()
        if "numpy" in library["filepath"]
        and library["user_api"] == "blas"
        and library["internal_api"] != "mkl"
    }


def test_budget_holds_inside_and_ends_outside():
    with thread_budget(3):
        assert threads() == 3
        with thread_budget(1):
            assert threads() == 1
        assert threads() == 3
    assert threads() == available_cores()


def test_budget_belongs_to_its_thread():
    seen = []
    with thread_budget(7):
        other = threading.Thread(target=lambda: seen.append(threads()))
        other.start()
        other.join()
    assert seen == [available_cores()]


def test_budget_below_one_is_refused():
    with (
        pytest.raises(SettingsError, match="expected at least 1 thread, found 0"),
        thread_budget(0),
    ):
        pass


@pytest.mark.parametrize(("n", "least", "expected"), [
    (30, 1, 3),
    (30, 15, 2),
    (29, 15, 1),
    (2, 1, 2),
    (2, 0, 2),
    (5, 6, 1),
    (0, 1, 1),
])  # fmt: skip
def test_parts_are_as_many_as_the_threads_and_as_long_as_wanted(n, least, expected):
    with thread_budget(3):
        assert n_parts(n, least) == expected


def test_numpys_blas_follows_the_budget():
    with thread_budget(2):
        assert blas_threads() == {2}
    with thread_budget(1):
        assert blas_threads() == {1}


def test_any_thread_may_have_a_budget():
    """Even while the thread that was the first to set BLAS's threads is alive."""
    seen = []

    def other(n):
        with thread_budget(n):
            seen.append(blas_threads())

    for n in (1, 2, 1):
        thread = threading.Thread(target=other, args=(n,))
        thread.start()
        thread.join()
    assert seen == [{1}, {2}, {1}]


def test_budgets_that_end_in_any_order_restore_the_first_number():
    """Two threads of a Dask worker: the first to come is the first to go."""
    original = blas_threads()
    entered, leave = threading.Event(), threading.Event()

    def other():
        with thread_budget(1):
            entered.set()
            assert leave.wait(60)

    second = threading.Thread(target=other)
    with thread_budget(2):
        second.start()
        assert entered.wait(60)
        assert blas_threads() == {1}
    assert blas_threads() == {1}
    leave.set()
    second.join()
    assert blas_threads() == original


def test_numexpr_follows_the_budget():
    import numexpr

    original = numexpr.get_num_threads()
    with thread_budget(1):
        assert numexpr.get_num_threads() == 1
        with thread_budget(2):
            assert numexpr.get_num_threads() == 2
        assert numexpr.get_num_threads() == 1
    assert numexpr.get_num_threads() == original


@pytest.mark.slow
def test_budget_overrides_what_a_nanny_exports():
    code = """
from tests.daskdl.kernels.runtime.test_threads import blas_threads
from daskdl.kernels.runtime.threads import thread_budget
before = blas_threads()
with thread_budget(2):
    inside = blas_threads()
print(before, inside, blas_threads())
"""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **dict.fromkeys(names, "1")},
        cwd=Path(__file__).parents[4],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout.split("\n")[0] == "{1} {2} {1}", run.stderr


@pytest.mark.parametrize(
    ("asked", "cores"),
    [("", 8), ("3", 3), (" 2, 4 ", 2), ("20", 8), ("0", 8), ("all", 8), ("-1", 8)],
)
def test_granted_cores_are_all_or_fewer_by_omp_num_threads(asked, cores, monkeypatch):
    monkeypatch.setattr(module, "available_cores", lambda: 8)
    monkeypatch.setattr(module, "_OMP_NUM_THREADS", asked)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # what a LocalCluster leaves behind
    assert module.granted_cores() == cores
