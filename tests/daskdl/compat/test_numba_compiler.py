"""numba's private names: the same machine code from a cold and a warm cache, which may fail."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
#: Gradients of a GRU and of its cell, which its loop calls too; "cell" calls the cell first.
GRADIENTS = """
import sys
import numpy as np
from daskdl.kernels.recurrent import gru, rnn
from daskdl.kernels.runtime.threads import thread_budget
draw = np.random.default_rng(0)
def normal(*shape):
    return draw.normal(size=shape).astype("f4")
gates, weight, states, up, dh = (
    normal(5, 4, 96), normal(72, 24), normal(6, 4, 24), normal(5, 4, 24), normal(4, 24)
)
with thread_budget(1):
    if "cell" in sys.argv:
        gru.gru_cell_gradient(np.zeros((4, 96), "f4"), -1.0, dh * 0, dh * 0)
    lengths = np.full(4, 5)
    arguments = states, up, lengths, False, dh
    rnn.run_back(gru.backward, "float32", gates, weight, *arguments)
    print(gates.tobytes().hex())
    gru.gru_cell_gradient(gates[0].copy(), -1.0, states[0], dh)
print(dh.tobytes().hex())
"""
KERNEL = """
import logging
logging.basicConfig(format="%(message)s")
from daskdl.kernels.runtime.jit import jit
@jit
def twice(x):
    return 2 * x
assert twice(3.5) == 7 and twice(2) == 4
print(sum(twice.stats.cache_hits.values()), twice.stats.cache_path)
"""


def run(code: str, cache: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
    """Run a program with a cache of its own."""
    file = cache.parent / "program.py"
    if not file.exists():
        file.write_text(code)
    return subprocess.run(
        [sys.executable, str(file), *arguments], check=True, capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(cache)} | environment,
        timeout=280,
    )  # fmt: skip


@pytest.mark.long
def test_gradients_are_the_same_cold_and_warm_and_whatever_was_called_before(tmp_path):
    first, again, after_cell = (
        run(GRADIENTS, tmp_path / "cache", *more).stdout for more in ((), (), ("cell",))
    )
    assert first == again
    assert first == after_cell


def hits_and_folder(done: subprocess.CompletedProcess) -> tuple[int, Path]:
    hits, folder = done.stdout.split(maxsplit=1)
    return int(hits), Path(folder.strip())


@pytest.mark.slow
def test_each_kind_of_processor_has_a_folder(tmp_path):
    other = {"NUMBA_CPU_NAME": "x86-64-v3", "NUMBA_CPU_FEATURES": "+avx2,+fma"}
    _, here = hits_and_folder(run(KERNEL, tmp_path / "cache"))
    hits, there = hits_and_folder(run(KERNEL, tmp_path / "cache", **other))
    assert hits == 0
    assert there.name.startswith("x86-64-v3-")
    assert here.parent == there.parent
    assert hits_and_folder(run(KERNEL, tmp_path / "cache")) == (2, here)


@pytest.mark.slow
def test_a_folder_that_cannot_be_made_is_logged_once_and_kernels_work(tmp_path):
    _, folder = hits_and_folder(run(KERNEL, tmp_path / "cache"))
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    folder.touch()  # a file in its place, which stops root, too
    done = run(KERNEL, tmp_path / "cache")
    assert hits_and_folder(done)[0] == 0
    assert done.stderr.count("the cache of compiled kernels cannot be") == 1
    assert "set NUMBA_CACHE_DIR to another folder" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suffix", "length"),
    [
        (".nbc", 100),
        *(
            pytest.param(suffix, length, marks=pytest.mark.long)
            for suffix, length in (
                (".nbi", 0),
                (".nbi", 1),
                (".nbi", 100),
                (".nbc", 0),
                (".nbc", 1),
            )
        ),
    ],
)
def test_a_damaged_file_is_compiled_anew(suffix, length, tmp_path):
    _, folder = hits_and_folder(run(KERNEL, tmp_path / "cache"))
    for path in folder.glob(f"*{suffix}"):
        path.write_bytes(path.read_bytes()[:length])
    assert hits_and_folder(run(KERNEL, tmp_path / "cache"))[0] == 0
    assert hits_and_folder(run(KERNEL, tmp_path / "cache"))[0] == 2


def test_an_index_names_no_file_before_it_is_there(tmp_path):
    """A process that ends between both leaves a file that nobody reads."""
    stop = "from daskdl.compat import numba_compiler as numba\ndef stop(*_): raise SystemExit\n"
    code = KERNEL.replace("@jit", f"{stop}numba._Files._save_index = stop\n@jit")
    file = tmp_path / "program.py"
    file.write_text(code)
    run(code, tmp_path / "cache")
    assert len(list((tmp_path / "cache").rglob("*.nbc"))) == 1
    assert not list((tmp_path / "cache").rglob("*.nbi"))
