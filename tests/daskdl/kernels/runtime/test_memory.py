"""Memory of kernels: alignment, pages, and stores past the cache."""

from __future__ import annotations

import ctypes
import gc
import pickle
import re
import subprocess
import sys
import threading

import numba
import numpy as np
import pytest

from daskdl.kernels.runtime import memory
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.memory import (
    ALIGNMENT,
    LARGE,
    SMALL,
    _Freed,
    aligned,
    empty,
    keep_freed,
)
from daskdl.kernels.runtime.passes import PAST, drain, put, streams

N = LARGE // 4 + 3


@pytest.mark.slow
@pytest.mark.parametrize("shape", [0, 7, (0, 3), (2, 3, 5), SMALL, N, (1, N)])
@pytest.mark.parametrize("dtype", ["f4", "f8", "u1"])
def test_empty_is_aligned_and_otherwise_an_ordinary_array(shape, dtype):
    array = empty(shape, dtype)
    assert array.shape == np.empty(shape).shape
    assert array.dtype == dtype
    assert array.nbytes < SMALL or array.ctypes.data % ALIGNMENT == 0
    assert array.flags.c_contiguous
    assert array.flags.writeable
    array[...] = 3
    twin = pickle.loads(pickle.dumps(array))
    np.testing.assert_array_equal(twin, array)


@pytest.fixture
def alone(monkeypatch):
    """A store of freed blocks that nobody else uses."""
    monkeypatch.setattr(memory, "_freed", _Freed())


@pytest.mark.slow
@pytest.mark.usefixtures("alone")
def test_memory_is_used_again_only_when_its_last_view_is_gone():
    array = empty(N, "f4")
    address, view = array.ctypes.data, array.reshape(1, -1)[:, 5:].T
    view[...] = 7
    del array
    gc.collect()
    other = empty(N, "f4")
    assert other.ctypes.data != address
    other[...] = 0
    assert (view == 7).all()
    del view
    gc.collect()
    assert empty(N, "f4").ctypes.data == address


@pytest.mark.usefixtures("alone")
def test_memory_goes_from_thread_to_thread():
    addresses = []
    for _ in range(3):
        thread = threading.Thread(target=lambda: addresses.append(empty(N, "f4").ctypes.data))
        thread.start()
        thread.join()
    assert len(set(addresses)) == 1


@pytest.mark.usefixtures("alone")
def test_a_small_request_does_not_take_a_large_block():
    block = empty(8 * N, "f4")
    address = block.ctypes.data
    del block
    small, large = empty(N, "f4"), empty(8 * N, "f4")
    assert small.ctypes.data != address
    assert large.ctypes.data == address


def test_freed_memory_that_is_kept_has_a_limit(monkeypatch):
    monkeypatch.setattr(memory, "KEPT", 100)
    freed = _Freed()
    blocks = [np.empty(n, np.uint8) for n in (60, 30, 40)]
    for block in blocks:
        freed.put(block)
    assert freed._blocks == blocks[1:]


#: The heap's end does not come back down after 100 MB are freed, and arrays that come and go in a
#: later thread do not touch new pages each time.
FREED = """
import resource, threading, numpy as np, daskdl.kernels
a = np.ones(100 << 20, np.uint8)
del a
print(int(open("/proc/self/statm").read().split()[1]) * 4096)
def work():
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        arrays = [np.ones(3 << 20, np.uint8) for _ in range(60)]
        del arrays
        faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
faults = []
thread = threading.Thread(target=work)
thread.start()
thread.join()
print(faults[0], max(faults[2:]))
"""


@pytest.mark.slow
def test_glibc_keeps_freed_arrays_in_a_fresh_process():
    if not hasattr(ctypes.CDLL(None), "gnu_get_libc_version"):
        assert not keep_freed()
        pytest.skip("glibc only")
    run = subprocess.run([sys.executable, "-c", FREED], capture_output=True, text=True, check=True)
    resident, first, later = map(int, run.stdout.split())
    assert resident > 100 << 20
    assert later < first / 4


def test_without_glibc_nothing_happens(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    assert keep_freed() is False


@jit
def double(x, y, past):
    for k in range(x.size):
        put(y, k, x[k] + x[k], past)
    drain(past)


@pytest.mark.slow
@pytest.mark.parametrize("n", [0, 1, 7, 8, 31, 32, 33, 1000, 4099])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("past", [None, True])
def test_every_element_arrives_and_no_other_changes(n, dtype, past):
    x = np.arange(n, dtype=dtype)
    whole = aligned(2 * SMALL, dtype)
    whole[...] = -1
    double(x, whole[:n], past)
    np.testing.assert_array_equal(whole[:n], 2 * x)
    assert (whole[n:] == -1).all()


def test_whole_vectors_are_written_past_the_caches():
    """LLVM joins the stores only where it finds them legal; one by one they gain nothing."""
    uncached = numba.njit(double.py_func, error_model="numpy")
    uncached(np.ones(3, "f4"), aligned(3, "f4"), True)
    (code,) = uncached.inspect_asm().values()
    if "ymm" not in code:
        pytest.skip("a processor without AVX")
    assert re.search(r"vmovnt(ps|dq|pd)\s+%[yz]mm", code)


def test_only_large_and_aligned_results_are_streamed():
    n = PAST // 8
    large = empty(2 * n + 1, "f4")
    assert streams(large)
    assert not streams(large[1:])
    assert not streams(empty(n, "f4"))
    assert streams(empty(n, "f4"), empty(n, "f4"))
