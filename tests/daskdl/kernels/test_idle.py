from __future__ import annotations

import os
import subprocess
import sys

import pytest

from daskdl.kernels import idle

PROGRAM = """
import ctypes, os, threading
import numpy as np
import threadpoolctl
a = np.random.default_rng(0).normal(size=(300, 300)).astype("f4")
before = a @ a
{first}
from daskdl.kernels.matmul import matmul
libraries = threadpoolctl.ThreadpoolController().select(internal_api="openblas").lib_controllers
numpys = [it.dynlib for it in libraries if "numpy.libs" in it.filepath]
for library in numpys:
    if hasattr(library, "openblas_thread_timeout"):
        print("ticks", library.openblas_thread_timeout())
for _ in range(3):
    np.testing.assert_allclose(matmul(a, a), before, rtol=1e-5, atol=1e-4)
from daskdl.kernels.threads import thread_budget
for n in (1, 2, 1, 3):
    with thread_budget(n):
        np.testing.assert_allclose(matmul(a, a), before, rtol=1e-5, atol=1e-4)
print("set", os.environ.get("OPENBLAS_THREAD_TIMEOUT"))
"""


def said(first: str = "", **environment: str) -> list[str]:
    plain = {name: value for name, value in os.environ.items() if name != idle.VARIABLE}
    program = PROGRAM.format(first=first)
    command = [sys.executable, "-c", program]
    run = subprocess.run(
        command,
        env={**plain, **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return run.stdout.split("\n")


def test_threads_of_a_library_that_is_loaded_sleep_soon() -> None:
    found = said()
    assert "set 20" in found
    ticks = [line for line in found if line.startswith("ticks")]
    if not ticks:
        pytest.skip("this OpenBLAS does not tell")
    assert ticks == ["ticks 20"]


def test_who_has_said_how_long_is_left_to_it() -> None:
    found = said(**{idle.VARIABLE: "9"})
    assert "set 9" in found
    assert "ticks 20" not in found


def test_nothing_is_stopped_where_other_threads_are() -> None:
    waits = "stop = threading.Event(); threading.Thread(target=stop.wait, daemon=True).start()"
    found = said(waits)
    assert "set 20" in found  # for processes that are started from here
    assert "ticks 20" not in found
