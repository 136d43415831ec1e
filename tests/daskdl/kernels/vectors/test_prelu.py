"""PReLU's kernels: the slopes' gradient has the same bits with any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.runtime.threads import thread_budget
from daskdl.kernels.vectors.prelu import backward, forward


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (5000, 31), (7, 100_003)])
def test_threads_do_not_change_the_sums(shape):
    x, dy = np.random.default_rng(0).standard_normal((2, *shape), np.float32)
    slope = np.random.default_rng(1).random(shape[1], np.float32)
    results = []
    for threads in (1, 2):
        with thread_budget(threads):
            results.append((forward(x, slope), *backward(x, slope, dy)))
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)
    y, dx, d_slope = results[0]
    np.testing.assert_array_equal(y, np.where(x > 0, x, slope * x))
    np.testing.assert_array_equal(dx, np.where(x > 0, dy, slope * dy))
    exact = np.where(x > 0, 0, dy.astype(float) * x).sum(0)
    np.testing.assert_allclose(d_slope, exact, rtol=1e-6, atol=1e-6)
