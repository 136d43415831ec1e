"""Zeros reach every number of a vector, and none beside it."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.runtime.nontemporal import PAST
from daskdl.kernels.runtime.threads import thread_budget
from daskdl.kernels.vectors.zeros import clear


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [0, 5, PAST // 4 + 1027])  # the last streams, and ends oddly
def test_all_numbers_of_a_part_are_zero_and_no_others(size, dtype, threads):
    whole = empty(size + 16, dtype)
    whole[:] = 1
    with thread_budget(threads):
        clear(whole[:size])
    assert not whole[:size].any()
    assert (whole[size:] == 1).all()


def test_a_vector_off_the_cache_lines_is_cleared_too():
    whole = empty(PAST, np.float32)
    whole[:] = 1
    clear(whole[1:-1])
    assert whole.sum() == 2
