"""Scratch memory: the same for the same name, apart for each thread."""

from __future__ import annotations

import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from daskdl.kernels.runtime import scratch as module
from daskdl.kernels.runtime.scratch import scratch


def test_the_same_name_has_the_same_memory_in_any_shape_that_fits():
    first = scratch("test", (3, 4), np.float64)
    assert first.shape == (3, 4)
    second = scratch("test", (5,), np.float32)
    assert second.dtype == np.float32
    assert np.shares_memory(first, second)
    assert not np.shares_memory(second, scratch("another test", (5,), np.float32))


def test_it_grows():
    scratch("growing", (2,), np.float32)
    large = scratch("growing", (1000,), np.float32)
    assert large.shape == (1000,)
    assert np.shares_memory(large, scratch("growing", (2,), np.float32))  # not the old one
    assert scratch("growing", (0, 7), np.float32).shape == (0, 7)


def test_it_begins_at_a_cache_line():
    arrays = [scratch(f"aligned {n}", (n,), np.uint8) for n in (1, 100, 5000, 3 << 20)]
    assert not any(array.ctypes.data % 64 for array in arrays)


def test_the_old_memory_is_gone_before_there_is_new(monkeypatch):
    old = weakref.ref(scratch("changing", (10,), np.uint8).base)
    gone = []
    make = np.empty
    monkeypatch.setattr(np, "empty", lambda *a: gone.append(old() is None) or make(*a))
    scratch("changing", (1000,), np.uint8)
    assert gone == [True]


def test_every_thread_has_its_own():
    mine = scratch("test", (3,), np.float32)
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(scratch, "test", (3,), np.float32).result()
    assert not np.shares_memory(mine, other)


def test_the_same_shape_is_the_same_array_and_few_are_kept(monkeypatch):
    assert scratch("kept", (9,), np.float32) is scratch("kept", (9,), np.float32)
    assert scratch("kept", (9,), np.float32) is not scratch("kept", (9,), np.float64)
    monkeypatch.setattr(module, "VIEWS", 3)
    shapes = [scratch("kept", (n,), np.float32).shape for n in range(9)]
    assert shapes == [(n,) for n in range(9)]
    assert len(module._kept.__dict__["kept"][1]) <= 3
