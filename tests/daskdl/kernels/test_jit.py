"""How kernels are compiled."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.jit import fastjit, jit


@pytest.mark.parametrize("compiled", [jit, fastjit])
def test_kernels_release_the_gil_are_cached_and_divide_as_numpy(compiled):
    @compiled
    def divide(x, y):
        return x / y

    assert divide(np.float64(1), np.float64(0)) == np.inf
    assert divide.targetoptions["nogil"]
    assert divide.stats.cache_path


@pytest.mark.parametrize("compiled", [jit, fastjit])
def test_kernels_keep_nan_and_infinity(compiled):
    @compiled
    def total(x):
        result = 0.0
        for k in range(x.size):
            result += x[k]
        return result

    assert np.isnan(total(np.array([1.0, np.nan, 2.0])))
    assert total(np.array([1.0, np.inf, 2.0])) == np.inf
