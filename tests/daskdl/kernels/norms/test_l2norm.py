"""Rows divided by their lengths, long ones and many, on any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.norms import l2norm as kernel
from daskdl.kernels.runtime.threads import thread_budget


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(700, 65), (3, 40_000), (0, 5)])
def test_rows_are_those_of_float64(shape, threads):
    x, dy = np.random.default_rng(0).normal(size=(2, *shape)).astype("f4")
    with thread_budget(threads):
        y, lengths = kernel.forward(x, 1e-12)
        dx = kernel.backward(dy, y, lengths, 1e-12)
    exact = x.astype("f8")
    np.testing.assert_allclose(lengths, np.linalg.norm(exact, axis=1), rtol=1e-6)
    unit = exact / np.linalg.norm(exact, axis=1, keepdims=True)
    np.testing.assert_allclose(y, unit, atol=1e-6)
    along = (dy * unit).sum(1, keepdims=True)
    np.testing.assert_allclose(dx, (dy - along * unit) / lengths[:, None], atol=1e-5)
