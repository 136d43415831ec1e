"""Rows times fixed weights, finished together with the sums: affine maps in inference.

The order of a row's sums does not depend on other rows. A BLAS computes few rows differently from
many, with different bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.convolution import direct, tiles_bfloat16
from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.products import pointwise
from daskdl.kernels.products.bfloat16 import columns_of
from daskdl.kernels.products.finish import Finish, Prepared, finish_rows
from daskdl.kernels.products.microkernel import COLUMNS, DEPTH, WIDEST_COLUMNS, address
from daskdl.kernels.products.packed import by_vectors, room_for
from daskdl.kernels.products.tall import TALL
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.precision import precision_of
from daskdl.kernels.runtime.team import work_over_range
from daskdl.kernels.runtime.threads import least_of
from daskdl.kernels.tiles import product
from daskdl.kernels.tiles.matmul import ONE, rows_positions
from daskdl.kernels.tiles.weights import panels_of

Array = NDArray[np.floating]
_POINT = Geometry((1, 1))


class Affine(Prepared):
    """``x @ weight.T + bias`` with fixed weights (out, in)."""

    def __init__(self, weight: Array, bias: Array | None = None) -> None:
        self.filters = len(weight)
        contiguous = np.require(weight, requirements=("C", "A", "W"))[:, None, None]
        self.precision = precision_of(weight)
        if self.precision == "bf16-tiles":
            self.panels: Any = panels_of(contiguous[:, 0], ONE)
        elif self.precision == "bf16-pairs":
            self.panels = columns_of(contiguous[:, 0, 0]).copy()
        else:
            (self.panels,) = direct.by_group(contiguous, _POINT)
        self.bias = np.zeros(-(-len(weight) // WIDEST_COLUMNS) * WIDEST_COLUMNS, weight.dtype)
        if bias is not None:
            self.bias[: len(weight)] = bias

    def shape_of(self, x: Array) -> tuple[int, ...]:
        """Return the shape of the result for x (..., in): (..., out)."""
        return *x.shape[:-1], self.filters

    def finishing(self, y: Array, x: Array, finish: Finish) -> Callable[[], object]:
        """Return a function without arguments that computes and finishes ``y``."""
        rows, results = x.reshape(-1, x.shape[-1]), y.reshape(-1, self.filters)
        finish = finish._replace(residual=finish.residual.reshape(results.shape))
        four = finish._replace(residual=finish.residual[None, None])
        pixels, images = rows[None, None], results[None, None]
        if self.precision == "bf16-tiles":
            return product.work_of(pixels, self.panels, rows_positions(len(rows)), images, four)
        if len(rows) < TALL:
            return self._by_panels(rows, results, finish)
        if self.precision == "bf16-pairs":
            return tiles_bfloat16.work_of(pixels, self.panels, _POINT, images, four)
        return pointwise.work_of(rows, self.panels[:, 0], results, finish)

    def _by_panels(self, x: Array, y: Array, finish: Finish) -> Callable[[], object]:
        least = least_of(2 * x.size * COLUMNS)
        panels = self.panels[:, 0]
        return work_over_range(_by_panels, len(panels), least, x, panels, y, finish)


@jit
def _by_panels(a, panels, y, finish, which, start, stop):
    """Compute the columns of the panels ``start`` to ``stop``."""
    bias, residual, limits = finish
    first, last = start * COLUMNS, min(stop * COLUMNS, y.shape[1])
    columns, depth = y[:, first:last], panels.shape[1]
    length = -(-depth // max(1, -(-depth // DEPTH)))
    room = room_for(a.shape[0], y)
    by_vectors(a, panels[start:stop], columns, False, room, a[:0], length)
    if address(residual) == address(y):
        finish_rows(columns, None, bias[first:last], limits)
    else:
        finish_rows(columns, residual[:, first:last], bias[first:last], limits)
