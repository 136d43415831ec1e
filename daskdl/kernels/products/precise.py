"""The matrix product of a layer's weights in the precision that a thread computes in."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.products import bfloat16
from daskdl.kernels.products.matmul import matmul
from daskdl.kernels.runtime.precision import precision
from daskdl.kernels.tiles import matmul as tiles

#: Features in and out of a layer from which on its products are in bfloat16: with fewer they take
#: no time, and a layer with few results is the last one, of which digits are wanted.
LEAST = 16


def precision_of(*weights: NDArray[Any]) -> str:
    """Return the precision that products with these weights, matrices, have now."""
    wide = all(w.dtype == np.float32 and min(w.shape) >= LEAST for w in weights)
    return precision() if wide else "float32"


def product_of(weight: NDArray[Any]) -> Any:
    """Return the function ``product(a, b, out=None)`` for a layer's weights, and their gradient."""
    products = {"bf16-pairs": bfloat16.matmul, "bf16-tiles": tiles.matmul}
    return products.get(precision_of(weight), matmul)
