"""Stores past the caches: the same numbers, wherever the array ends."""

from __future__ import annotations

import re

import numba
import numpy as np
import pytest

from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.memory import SMALL, empty
from daskdl.kernels.runtime.nontemporal import PAST, drain, put, streams


@jit
def double(x, y, past):
    for k in range(x.size):
        put(y, k, x[k] + x[k], past)
    drain(past)


@pytest.mark.parametrize("n", [0, 1, 7, 8, 31, 32, 33, 1000, 4099])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("past", [None, True])
def test_every_element_arrives_and_no_other_changes(n, dtype, past):
    x = np.arange(n, dtype=dtype)
    whole = empty(SMALL, dtype)
    whole[...] = -1
    double(x, whole[:n], past)
    np.testing.assert_array_equal(whole[:n], 2 * x)
    assert (whole[n:] == -1).all()


def test_it_writes_whole_vectors_past_the_caches():
    """LLVM joins the stores only where it finds them legal; one by one they gain nothing."""
    uncached = numba.njit(double.py_func, error_model="numpy")
    uncached(np.ones(3, "f4"), empty(SMALL, "f4"), True)
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
