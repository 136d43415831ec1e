"""Results that have the same bits with any number of threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from daskdl.kernels.runtime.threads import thread_budget


def same_bits(function: Callable[[], Any], *budgets: int) -> Any:
    """Return an array, or arrays, that a function makes; they are the same with each budget."""
    results = []
    for n in budgets or (1, 2):
        with thread_budget(n):
            results.append(function())
    for other in results[1:]:
        pairs = (
            [(results[0], other)]
            if isinstance(other, np.ndarray)
            else zip(results[0], other, strict=True)
        )
        for one, two in pairs:
            np.testing.assert_array_equal(one, two)
    return results[0]
