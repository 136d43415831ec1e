"""Rows times fixed weights, finished together with the sums: affine maps in inference.

The order of a row's sums does not depend on other rows. A BLAS computes few rows differently from
many, with different bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.convolution import direct, tiles_bfloat16
from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.products import pointwise
from daskdl.kernels.products.bfloat16 import along, columns_of
from daskdl.kernels.products.finish import Finish, Prepared, limited
from daskdl.kernels.products.microkernel import (
    COLUMNS,
    DEPTH,
    FEW_ROWS,
    ROWS,
    SEGMENT,
    WIDEST_COLUMNS,
    address,
    keep,
    multiply,
    multiply_few,
    multiply_finished,
)
from daskdl.kernels.products.tall import TALL
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.precision import precision_of
from daskdl.kernels.runtime.team import over_range
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
        self.half = self.precision == "bf16-pairs"
        if self.precision == "bf16-tiles":
            self.panels: Any = panels_of(contiguous[:, 0], ONE)
        elif self.half:
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
        if y.ndim != 2:
            finish = finish._replace(residual=finish.residual.reshape(results.shape))
        if self.precision == "bf16-tiles":
            four = finish._replace(residual=finish.residual[None, None])
            x, y = rows[None, None], results[None, None]
            return product.work_of(x, self.panels, rows_positions(len(rows)), y, four)
        if self.half and len(rows) >= TALL:
            four = finish._replace(residual=finish.residual[None, None])
            pixels = rows[None, None], self.panels, _POINT, results[None, None], four
            return tiles_bfloat16.work_of(*pixels)
        tall = not self.half and len(rows) >= TALL
        if tall and pointwise.serves(rows.shape[1], rows.itemsize):
            return pointwise.work_of(rows, self.panels[:, 0], results, finish)
        return partial(self._run, rows, results, finish)

    def _run(self, x: Array, y: Array, finish: Finish) -> None:
        rows: Any = along(x) if self.half else x
        if len(rows) > pointwise.FEW:
            four = Finish(finish.bias, finish.residual[None, None], finish.limits)
            direct.forward_packed(rows[None, None], (self.panels,), _POINT, y[None, None], four)
        else:
            least = least_of(2 * rows.size * COLUMNS)
            over_range(_by_panels, len(self.panels), least, rows, self.panels[:, 0], y, finish)


@jit
def _by_panels(a, panels, y, finish, which, start, stop):
    """Compute the columns of the panels ``start`` to ``stop``, all rows of one panel at a time."""
    (rows, depth), width, size = a.shape, y.shape[1], a.itemsize
    groups, line = -(-rows // ROWS), COLUMNS * size
    slices = -(-depth // DEPTH)
    length = -(-depth // slices)
    table = np.empty((groups, SEGMENT), np.int64)
    targets = np.empty((2, groups * ROWS), np.int64)
    spare = np.empty((groups * ROWS, COLUMNS), y.dtype)
    entries, places = table.reshape(-1), targets.reshape(-1)
    low, high = finish[2][0], finish[2][1]
    for r in range(groups * ROWS):  # after the last row, repeat it
        row = min(r, rows - 1)
        places[r] = address(y) + row * width * size
        places[groups * ROWS + r] = address(spare) + row * line
    for j in range(start, stop):
        remaining = width - j * COLUMNS
        whole = remaining >= COLUMNS
        first = 0 if whole else groups * ROWS
        offset = j * line if whole else 0
        for s in range(slices):
            begin = s * length
            last = whole and s + 1 == slices
            panel = address(panels) + (j * depth + begin) * line
            for group in range(groups):
                for i in range(ROWS):
                    row = min(group * ROWS + i, rows - 1)
                    entries[group * SEGMENT + i] = address(a) + (row * depth + begin) * size
                entries[group * SEGMENT + ROWS] = 0
                entries[group * SEGMENT + ROWS + 1] = min(length, depth - begin)
                entry = address(table) + group * SEGMENT * 8
                to = address(targets) + (first + group * ROWS) * 8
                few = rows - group * ROWS <= FEW_ROWS
                if last:
                    multiply_finished(
                        a, entry, 1, size, panel, line, to, offset, s > 0, few, y, finish
                    )
                elif few:
                    multiply_few(a, entry, 1, size, panel, line, to, offset, s > 0)
                else:
                    multiply(a, entry, 1, size, panel, line, to, offset, s > 0)
        if not whole:
            for r in range(rows):
                for c in range(remaining):
                    column = j * COLUMNS + c
                    value = spare[r, c] + finish[0][column]
                    if address(finish[1]) != address(y):
                        value += finish[1][r, column]
                    y[r, column] = limited(value, low, high)
    keep(spare)
