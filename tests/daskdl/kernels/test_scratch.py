"""Scratch memory: the same for the same name, apart for each thread."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from daskdl.kernels.scratch import scratch


def test_the_same_name_has_the_same_memory_in_any_shape_that_fits():
    first = scratch("test", (3, 4), np.float64)
    assert first.shape == (3, 4)
    second = scratch("test", (5,), np.float32)
    assert second.dtype == np.float32
    assert np.shares_memory(first, second)
    assert not np.shares_memory(second, scratch("another test", (5,), np.float32))


def test_it_grows():
    scratch("growing", (2,), np.float32)
    assert scratch("growing", (1000,), np.float32).shape == (1000,)
    assert scratch("growing", (0, 7), np.float32).shape == (0, 7)


def test_every_thread_has_its_own():
    mine = scratch("test", (3,), np.float32)
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(scratch, "test", (3,), np.float32).result()
    assert not np.shares_memory(mine, other)
