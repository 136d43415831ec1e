"""Copies: numpy's, of large vectors and of whatever else there is."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.runtime.threads import thread_budget
from daskdl.kernels.vectors.copies import copied, copy_to

SIZES = [0, 7, (1 << 20) + 3]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("n", SIZES)
def test_it_has_all_numbers_and_its_own_memory(n, threads):
    x = np.random.default_rng(0).normal(size=n).astype(np.float32)
    with thread_budget(threads):
        new = copied(x)
    np.testing.assert_array_equal(new, x)
    assert not np.shares_memory(new, x)


def test_a_single_number_keeps_its_shape():
    new = copied(np.array(3.0, np.float32))
    assert new.shape == ()
    assert new == 3


@pytest.mark.parametrize("threads", [1, 2])
def test_parts_that_begin_anywhere_and_other_dtypes(threads):
    rng = np.random.default_rng(1)
    x, wide = rng.normal(size=3 << 20).astype(np.float32), rng.normal(size=1 << 20)
    whole, cast, apart = (empty(3 << 20, np.float32) for _ in range(3))
    with thread_budget(threads):
        copy_to(whole, x)
        copy_to(whole[5 : 5 + (2 << 20)], x[: 2 << 20])
        copy_to(cast[: 1 << 20], wide)
        copy_to(apart[: 1 << 20], x[::3])
    np.testing.assert_array_equal(whole[5 : 5 + (2 << 20)], x[: 2 << 20])
    np.testing.assert_array_equal(whole[:5], x[:5])
    np.testing.assert_array_equal(whole[5 + (2 << 20) :], x[5 + (2 << 20) :])
    np.testing.assert_array_equal(cast[: 1 << 20], wide.astype(np.float32))
    np.testing.assert_array_equal(apart[: 1 << 20], x[::3])


def test_onto_itself_it_stays():
    x = empty(2 << 20, np.float32)
    x[:] = 1
    copy_to(x, x)
    assert (x == 1).all()


def test_other_shapes_are_refused():
    x = empty(2 << 20, np.float32)
    with pytest.raises(ValueError, match="broadcast"):
        copy_to(x, np.zeros(3, np.float32))
