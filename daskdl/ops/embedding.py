"""Embedding: the rows of a table by their ids."""

from __future__ import annotations

import numpy as np

from daskdl.errors import SettingsError, ShapeError
from daskdl.kernels.vectors import embedding as kernel
from daskdl.rows import Rows
from daskdl.tensor import Array, op

__all__ = ["embedding"]


@op
def embedding(table: Array, ids: Array, *, padding: int | None = None):
    """Take rows of a table.  table (rows, C), ids (...) of any integer dtype -> (..., C).

    For the id ``padding`` zeros come out, and no gradient goes to its row.

    The gradient to the table is the :class:`~daskdl.rows.Rows` that were taken. Tensors add it into
    an array of their shape, but for parameters that keep it, see :class:`daskdl.nn.Parameter`.

    Raises
    ------
    ShapeError
        When the table is not a matrix, the ids are not integers, or one is not in the table.
    SettingsError
        When the padding is not in the table.

    Examples
    --------
    >>> ops.embedding(np.eye(3), np.array([2, 0])).data
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """
    table, ids = np.asarray(table), np.asarray(ids)
    if table.ndim != 2:
        raise ShapeError(f"embedding: expected a table of shape (rows, C), found {table.shape}")
    if ids.dtype.kind not in "iu":
        raise ShapeError(
            f"embedding: expected integer ids, found {ids.dtype} {ids.shape}"
            "; ids.astype(np.int64) makes whole numbers so"
        )
    if padding is not None and not 0 <= padding < len(table):
        raise SettingsError(
            f"embedding: padding: expected an id from 0 to {len(table) - 1}, found {padding}"
            "; give the id of a row of the table"
        )

    def to_table(dy: Array) -> Rows:
        rows = Rows.of(ids, dy, len(table))
        if padding is not None:
            rows.values[rows.ids == padding] = 0
        return rows

    y = kernel.gather(table, ids)
    if padding is not None:
        y[ids == padding] = 0
    return y, lambda dy: (lambda: to_table(dy), None)
