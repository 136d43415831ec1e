"""Kernels are compiled with the flags that they ask for, and cached."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from daskdl.kernels.runtime import jit as module
from daskdl.kernels.runtime.jit import compile_lock, fastjit, jit

ROOT = Path(__file__).resolve().parents[4]


@pytest.mark.parametrize("compiled", [jit, fastjit])
def test_kernels_release_the_gil_are_cached_and_divide_as_numpy(compiled):
    @compiled
    def divide(x, y):
        return x / y

    assert divide(np.float64(1), np.float64(0)) == np.inf
    assert divide.targetoptions["nogil"]
    assert divide.stats.cache_path


def test_a_kernel_without_a_folder_to_write_to_says_what_to_set(monkeypatch, caplog):
    monkeypatch.setattr(module.KernelCache, "__init__", Mock(side_effect=RuntimeError("nowhere")))
    assert jit(lambda x: x + 1)(3) == 4
    assert "set NUMBA_CACHE_DIR (nowhere)" in caplog.text


@pytest.mark.parametrize("compiled", [jit, fastjit])
def test_kernels_keep_nan_and_infinity(compiled):
    @compiled
    def total(x):
        result = 0.0
        for k in range(x.size):
            result += x[k]
        return result

    assert np.isnan(total(np.array([1.0, np.nan, 2.0])))
    assert total(np.array([1.0, np.inf, 2.0])) == np.inf


def test_a_stamp_covers_a_kernels_module_and_the_modules_that_it_imports():
    modules = [name for name, _ in module._stamp(__name__)]
    assert {__name__, module.__name__} <= {*modules}


KERNELS = """
from daskdl.kernels.runtime.jit import fastjit, jit

@jit
def inner(x):
    return x + 1

@fastjit
def outer(x):
    return 2 * inner(x)
"""
MAIN = """
import logging, sys
from pathlib import Path
logging.basicConfig(format="%(message)s")
from kernels import inner, outer
open(sys.argv[1], "w").close()
while not Path(sys.argv[2]).exists():
    pass
assert outer(3.0) == 8
misses = sum(sum(f.stats.cache_misses.values()) for f in (inner, outer))
print(misses, flush=True)
"""


@pytest.mark.slow
def test_processes_that_start_together_compile_once(tmp_path):
    (tmp_path / "kernels.py").write_text(KERNELS)
    environment = os.environ | {
        "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}",
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        "TMPDIR": str(tmp_path),
    }

    def start(number: int) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", MAIN, tmp_path / f"ready{number}", tmp_path / "go"],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    processes = [start(number) for number in range(3)]
    while len(list(tmp_path.glob("ready*"))) < 3:
        assert all(process.poll() is None for process in processes)
        time.sleep(0.01)
    (tmp_path / "go").touch()
    ended = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], ended
    # The one that compiles has two misses and logs them; the others load its cache.
    assert sorted(int(out) for out, _ in ended) == [0, 0, 2]
    assert sorted("compiling kernels" in err for _, err in ended) == [False, False, True]
    assert len(list((tmp_path / "cache").rglob("*.nbc"))) == 2


def test_locks_of_different_functions_do_not_wait_for_each_other(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    with compile_lock(one), compile_lock(other):  # nobody waits
        pass


def test_the_lock_is_released_after_an_error(tmp_path):
    def fail() -> None:
        with compile_lock(tmp_path / "lock"):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    taken = threading.Event()

    def take() -> None:
        with compile_lock(tmp_path / "lock"):
            taken.set()

    thread = threading.Thread(target=take)
    thread.start()
    assert taken.wait(10)
    thread.join()


def test_a_second_thread_waits_for_the_lock(tmp_path):
    order = []

    def take() -> None:
        with compile_lock(tmp_path / "lock"):
            order.append("second")

    with compile_lock(tmp_path / "lock"):
        thread = threading.Thread(target=take)
        thread.start()
        thread.join(0.2)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_nobody_waits_for_ever(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(module, "PATIENCE", 0.1)
    with compile_lock(tmp_path / "lock"), compile_lock(tmp_path / "lock"):
        pass
    assert "waited 0.1 s for another process" in caplog.text


def test_without_a_folder_for_the_lock_everybody_compiles(tmp_path):
    with compile_lock(tmp_path / "none" / "there" / "lock"):
        pass


USER = """
from daskdl.kernels.runtime.jit import jit
{taken}

@jit
def outer(x):
    return 2 * {inner}(x)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("home", "taken", "inner"),
    [
        ("one", "from {package}.one.used import inner", "inner"),
        ("other", "from {package}.other import used", "used.inner"),
    ],
)
def test_an_edit_of_an_inlined_function_is_noticed(home, taken, inner, tmp_path):
    package = "kernels_in_a_package"
    for folder in (package, f"{package}/one", f"{package}/other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").touch()
    user, file = tmp_path / package / "one" / "user.py", tmp_path / package / home / "used.py"
    user.write_text(USER.format(taken=taken.format(package=package), inner=inner))
    environment = os.environ | {
        "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}",
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
    }
    used = "from daskdl.kernels.runtime.jit import jit\n\n@jit\ndef inner(x):\n    return x + {}\n"
    program = f"from {package}.one.user import outer; print(outer(3), outer.stats.cache_hits)"
    results = []
    for added in (1, 1, 100):
        file.write_text(used.format(added))
        os.utime(file, (1 + len(results),) * 2)  # as in a copy of the checkout
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=environment, check=True, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        results.append(done.stdout.split(maxsplit=1)[0])
        if len(results) == 2:
            assert ": 1}" in done.stdout, "the second run compiled again"
    assert results == ["8", "8", "206"]
