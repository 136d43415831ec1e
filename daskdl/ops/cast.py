"""Numbers in another dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl.tensor import Array, op

__all__ = ["cast"]


@op
def cast(x: Array, *, dtype: Any):
    """Return x in another dtype; between floats the gradient is cast back, else there is none.

    Examples
    --------
    >>> ops.cast(np.array([1.5, 2.5]), dtype=np.float32).dtype
    dtype('float32')
    """
    x = np.asarray(x)
    y = x.astype(dtype)
    floats = x.dtype.kind == y.dtype.kind == "f"
    return y, lambda dy: (dy.astype(x.dtype) if floats else None,)
