"""Products of few rows with weights that stay the same: put in order once, for all steps.

At each step of a sequence a BLAS would copy the weights into its own order again, which for the few
samples of a batch takes longer than multiplying.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.jit import jit
from daskdl.kernels.microkernel import COLUMNS, DEPTH, ROWS, SEGMENT, address, multiply

Array = NDArray[np.floating]


def packed(weight: Array) -> Array:
    """Return weights (K, M) in panels (M / COLUMNS, K, COLUMNS), the last filled with zeros."""
    depth, width = weight.shape
    panels = np.zeros((-(-width // COLUMNS), depth, COLUMNS), weight.dtype)
    for j, panel in enumerate(panels):
        part = weight[:, j * COLUMNS : (j + 1) * COLUMNS]
        panel[:, : part.shape[1]] = part
    return panels


@jit
def room_for(rows, like):  # type: ignore[no-untyped-def]
    """Return what :func:`add_product` of so many rows needs while it runs."""
    groups = -(-rows // ROWS)
    return (
        np.empty((groups, SEGMENT), np.int64),
        np.empty((2, groups, ROWS), np.int64),
        np.empty((groups * ROWS, COLUMNS), like.dtype),
    )


@jit
def add_product(a, panels, c, room):  # type: ignore[no-untyped-def]
    """Compute ``c += a @ weights`` inside a numba function.

    Parameters
    ----------
    a : array (rows, K)
    panels : array
        The weights (K, M), from :func:`packed`.
    c : array (rows, M)
        Changed in place. The numbers of a row lie side by side; rows may lie apart, as in ``a``.
    room : from :func:`room_for` of at least so many rows
    """
    table, targets, spare = room
    rows, depth, width, size = a.shape[0], a.shape[1], c.shape[1], a.itemsize
    groups, from_a, to_c = -(-rows // ROWS), address(a), address(c)
    for r in range(groups * ROWS):  # behind the last row it comes again
        row, group, i = min(r, rows - 1), r // ROWS, r % ROWS
        targets[0, group, i] = to_c + row * c.strides[0]
        targets[1, group, i] = address(spare) + row * COLUMNS * size
    for begin in range(0, depth, DEPTH):
        for r in range(groups * ROWS):
            table[r // ROWS, r % ROWS] = from_a + min(r, rows - 1) * a.strides[0] + begin * size
        for group in range(groups):
            table[group, ROWS], table[group, ROWS + 1] = 0, min(DEPTH, depth - begin)
        for j in range(panels.shape[0]):
            left = width - j * COLUMNS
            whole = left >= COLUMNS
            for group in range(groups):
                multiply(
                    a, address(table[group]), 1, size, address(panels[j, begin]), COLUMNS * size,
                    address(targets[0 if whole else 1, group]),
                    j * COLUMNS * size if whole else 0, whole,
                )  # fmt: skip
            if not whole:
                for r in range(rows):
                    for k in range(left):
                        c[r, j * COLUMNS + k] += spare[r, k]
