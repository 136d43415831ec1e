"""Dot products against exact sums."""

from __future__ import annotations

import math

import numpy as np
import pytest

from daskdl.kernels.runtime.threads import thread_budget
from daskdl.kernels.vectors.dots import BLOCK, dot


@pytest.mark.parametrize("n", [0, 1, 1000, BLOCK, 5 * BLOCK + 3])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_it_is_the_sum_of_products(n, dtype):
    a, b = np.random.default_rng(n).normal(size=(2, n)).astype(dtype)
    exact = math.fsum(a.astype(float) * b.astype(float))
    assert dot(a, b) == pytest.approx(exact, rel=1e-12, abs=1e-9)


def test_two_threads_give_the_bits_of_one():
    a, b = np.random.default_rng(0).normal(size=(2, 9 * BLOCK + 7)).astype("f4")
    with thread_budget(1):
        alone = dot(a, b)
    with thread_budget(2):
        assert dot(a, b) == alone
