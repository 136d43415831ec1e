"""Matrix products in the order of AMX's tiles, and the product in the thread's precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.products import bfloat16
from daskdl.kernels.products import matmul as float32
from daskdl.kernels.products.finish import finish_of
from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.runtime.precision import precision_of
from daskdl.kernels.tiles.gradient import weight_gradient
from daskdl.kernels.tiles.instructions import BLOCK
from daskdl.kernels.tiles.positions import Positions, positions_of
from daskdl.kernels.tiles.product import work_of
from daskdl.kernels.tiles.weights import Panels, panels_of

Array = NDArray[np.float32]

#: The tap of a window of one pixel.
ONE, _POINT = np.zeros(1, np.int64), np.zeros((1, 2), np.int64)


def rows_positions(rows: int) -> Positions:
    """Return the positions of the rows of a matrix."""
    return positions_of((1, 1, rows), _POINT, (1, 1), (1, rows))


def matmul(a: Array, b: Array, out: Array | None = None) -> Array:
    """Return ``a @ b`` in bfloat16; float32 (M, K), (K, N), with contiguous rows or columns."""
    if a.flags.f_contiguous and not a.flags.c_contiguous and b.flags.c_contiguous:
        y: Any = _outer(_plain(b), _plain(a.T)) if 0 not in (*a.shape, b.shape[1]) else None
    elif b.flags.f_contiguous and not b.flags.c_contiguous:
        y = _rows(_plain(a), panels_of(_plain(b.T)[:, None], ONE, name="tile weights"), b.shape[1])
    else:
        panels = panels_of(_plain(b)[:, None], ONE, True, "tile weights")
        y = _rows(_plain(a), panels, b.shape[1])
    if y is None:
        y = np.zeros((a.shape[0], b.shape[1]), np.float32)
    if out is None:
        return y
    out[...] = y
    return out


def _plain(x: Array) -> Array:
    return np.require(x, np.float32, ("C", "A", "W"))


def _outer(b: Array, a: Array) -> Array:
    positions = rows_positions(len(a))
    return weight_gradient(b[None, None], a[None, None], positions)[:, 0]


def _rows(a: Array, panels: Panels, columns: int) -> Array:
    """Return the products (M, columns) of rows (M, K) and panels."""
    y = empty((len(a), columns), np.float32)
    if not y.size or not a.shape[1]:
        y[:] = 0
        return y
    four = y[None, None]
    bias = np.zeros(len(panels) * BLOCK, np.float32)
    work_of(a[None, None], panels, rows_positions(len(a)), four, finish_of(four, bias))()
    return y


def product_of(weight: NDArray[Any]) -> Any:
    """Return the function ``product(a, b, out=None)`` for a layer's weights and their gradient."""
    products = {"bf16-pairs": bfloat16.matmul, "bf16-tiles": matmul}
    return products.get(precision_of(weight), float32.matmul)
