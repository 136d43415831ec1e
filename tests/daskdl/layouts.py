"""The same numbers laid out in memory in ways that an operation has to take."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np


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
