"""The matrix product of a layer's weights in the precision that a thread computes in."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.products import bfloat16
from daskdl.kernels.products.matmul import matmul
from daskdl.kernels.runtime.precision import precision

#: Features in and out of a layer from which on its products are in bfloat16: with fewer they take
#: no time, and a layer with few results is the last one, of which digits are wanted.
LEAST = 16


def in_bfloat16(*weights: NDArray[Any]) -> bool:
    """Return whether products with these weights, matrices, are in bfloat16 now."""
    return precision() == "bf16" and all(
        w.dtype == np.float32 and min(w.shape) >= LEAST for w in weights
    )


def product_of(weight: NDArray[Any]) -> Any:
    """Return the function ``product(a, b, out=None)`` for a layer's weights, and their gradient."""
    return bfloat16.matmul if in_bfloat16(weight) else matmul
