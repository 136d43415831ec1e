"""Layer normalisation of long rows and many: sums that stay exact, on any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.norms import layernorm as kernel
from daskdl.kernels.runtime.threads import thread_budget


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(700, 65), (3, 40_000), (0, 5)])
def test_rows_are_those_of_float64(shape, threads):
    rng = np.random.default_rng(0)
    x, dy = (100 + rng.normal(size=(2, *shape))).astype("f4")
    weight, bias = rng.normal(size=(2, shape[1])).astype("f4")
    with thread_budget(threads):
        y, scales = kernel.forward(x, weight, bias, 1e-5)
        dx, totals = kernel.backward(dy, x, weight, scales)
    exact, g = x.astype("f8"), dy.astype("f8")
    deviation = np.sqrt(exact.var(1, keepdims=True) + 1e-5)
    d = (exact - exact.mean(1, keepdims=True)) / deviation
    np.testing.assert_allclose(y, d * weight + bias, atol=1e-4)
    np.testing.assert_allclose(totals, [(g * d).sum(0), g.sum(0)], rtol=1e-4, atol=0.05)
    w = g * weight
    slope = (w * d).mean(1, keepdims=True)
    expected = (w - w.mean(1, keepdims=True) - d * slope) / deviation
    np.testing.assert_allclose(dx, expected, atol=0.02)
