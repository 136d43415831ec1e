"""Local response normalisation of many rows, on any number of threads, against float64."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.norms import lrn as kernel
from daskdl.kernels.norms.lrn import Response
from daskdl.kernels.runtime.threads import thread_budget


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(700, 65), (3, 5000), (0, 5)])
@pytest.mark.parametrize("response", [Response(5, 0.3, 0.75, 1.0), Response(4, 2.0, 0.5, 0.1)])
def test_rows_are_those_of_float64(shape, threads, response):
    x, dy = np.random.default_rng(0).normal(size=(2, *shape)).astype("f4")
    with thread_budget(threads):
        y, dx = kernel.forward(x, response), kernel.backward(dy, x, response)
    before, after = response.size // 2, (response.size - 1) // 2
    exact = x.astype("f8")

    def windows(a, before, after):
        padded = np.pad(a, ((0, 0), (before, after)))
        return np.lib.stride_tricks.sliding_window_view(padded, response.size, 1).sum(-1)

    s = response.k + response.alpha / response.size * windows(exact**2, before, after)
    expected = exact * s**-response.beta
    np.testing.assert_allclose(y, expected, atol=1e-5)
    around = windows(dy * expected / s, after, before)
    factor = 2 * response.alpha / response.size * response.beta
    np.testing.assert_allclose(dx, dy * s**-response.beta - factor * x * around, atol=1e-5)
