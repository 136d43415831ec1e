"""One pass: any input, any number of threads, large and small."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.memory import LARGE
from daskdl.kernels.runtime.nontemporal import drain, put
from daskdl.kernels.runtime.passes import UNIT, flat, one_pass
from daskdl.kernels.runtime.threads import thread_budget


@jit
def both(x, y, total, difference, factors, past):
    for k in range(x.size):
        put(total, k, x[k] + factors[0] * y[k], past)
        put(difference, k, x[k] - factors[0] * y[k], past)
    drain(past)


@pytest.mark.parametrize("n", [0, 1, UNIT, 100 * UNIT + 5, LARGE // 4 + 9])
@pytest.mark.parametrize("threads", [1, 2])
def test_all_elements_of_all_results(n, threads):
    x, y = np.random.default_rng(0).random((2, n), np.float32)
    with thread_budget(threads):
        total, difference = one_pass(both, x, y, settings=np.array([2], "f4"), results=2)
    np.testing.assert_allclose(total, x + 2 * y, rtol=1e-6)
    np.testing.assert_allclose(difference, x - 2 * y, rtol=1e-6, atol=1e-6)


def test_any_layout_of_its_inputs_is_right_and_compiles_once():
    rng = np.random.default_rng(0)
    wide = rng.random((6, 10), np.float32)
    read_only, fortran = rng.random((6, 5), np.float32), np.asfortranarray(wide[:, :5])
    read_only.flags.writeable = False
    unaligned = np.frombuffer(b"x" + read_only.tobytes(), np.float32, offset=1).reshape(6, 5)
    factors = np.array([1], "f4")
    one_pass(both, wide, wide, settings=factors, results=2)
    compiled = len(both.signatures)
    for x in (wide[:, ::2], wide[::-1, :5], fortran, read_only, unaligned):
        total, _ = one_pass(both, x, read_only, settings=factors, results=2)
        np.testing.assert_allclose(total, x + read_only, rtol=1e-6)
    assert len(both.signatures) == compiled


def test_flat_is_a_view_that_cannot_be_written():
    x = np.zeros((2, 3))
    vector = flat(x)
    assert np.shares_memory(vector, x)
    assert not vector.flags.writeable
    assert x.flags.writeable
