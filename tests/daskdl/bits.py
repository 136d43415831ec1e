"""Unusual memory layouts, and a check that the number of threads changes no bit of a result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from daskdl.kernels.runtime.threads import thread_budget


def layouts(x: np.ndarray) -> Iterator[np.ndarray]:
    """Yield x read-only, in Fortran's order, as a view with gaps, backwards, and unaligned."""
    read_only = x.copy()
    read_only.flags.writeable = False
    yield read_only
    yield np.asfortranarray(x)
    wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
    wide[..., ::2] = x
    yield wide[..., ::2]
    yield x[::-1].copy()[::-1]
    yield np.frombuffer(b"-" + x.tobytes(), x.dtype, offset=1).reshape(x.shape)


def same_bits(function: Callable[[], Any], *budgets: int) -> Any:
    """Check that a function's array or arrays have the same bits with each budget; return them."""
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
