"""Sums of two arrays: numpy's bits, in any layout, dtype and number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.runtime.threads import thread_budget
from daskdl.kernels.vectors.addition import LEAST, add_into, added


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("threads", [1, 2])
def test_is_numpys_sum(dtype, threads):
    a, b = np.random.default_rng(0).normal(size=(2, 3, LEAST + 5)).astype(dtype)
    a[0, :2] = np.nan, np.inf
    with thread_budget(threads):
        np.testing.assert_array_equal(added(a, b), a + b)
        np.testing.assert_array_equal(added(a[:, ::2], b[:, ::2]), a[:, ::2] + b[:, ::2])
        np.testing.assert_array_equal(added(a[:2, 1:], b[1:, 1:]), a[:2, 1:] + b[1:, 1:])


def test_small_arrays_broadcast_and_mix_as_numpys():
    a, b = np.ones((2, 3), "f4"), np.ones(3, "f8")
    assert added(a, b).dtype == np.float64
    assert added(a, b).shape == (2, 3)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("threads", [1, 2])
def test_in_place_is_numpys_sum(dtype, threads):
    a, b = np.random.default_rng(0).normal(size=(2, 3, LEAST + 5)).astype(dtype)
    a[0, :2] = np.nan, np.inf
    expected, other = a + b, b.astype("f4")
    mixed = a + other
    with thread_budget(threads):
        total, turned, sum_of_two_dtypes = a.copy(), a.T.copy().T, a.copy()
        add_into(total, b)
        add_into(turned, b)
        add_into(sum_of_two_dtypes, other)
    np.testing.assert_array_equal(total, expected)
    np.testing.assert_array_equal(turned, expected)
    np.testing.assert_array_equal(sum_of_two_dtypes, mixed)
