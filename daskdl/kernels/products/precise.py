"""The matrix product of a layer's weights in the thread's precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.products import bfloat16
from daskdl.kernels.products.matmul import matmul
from daskdl.kernels.runtime.precision import precision
from daskdl.kernels.tiles import matmul as tiles

#: Least features, in and out, of a layer with products in bfloat16. With fewer, products take no
#: time, and a layer with few results is the last one, whose digits matter.
LEAST = 16


def precision_of(*weights: NDArray[Any]) -> str:
    """Return the current precision of products with these weights, matrices."""
    wide = all(w.dtype == np.float32 and min(w.shape) >= LEAST for w in weights)
    return precision() if wide else "float32"


def product_of(weight: NDArray[Any]) -> Any:
    """Return the function ``product(a, b, out=None)`` for a layer's weights and their gradient."""
    products = {"bf16-pairs": bfloat16.matmul, "bf16-tiles": tiles.matmul}
    return products.get(precision_of(weight), matmul)
