"""Update kernels over the rows of a table that a batch touched, in place.

The gradient has the form of :func:`daskdl.kernels.vectors.embedding.row_gradient`: (ids, rows),
each id once. The kernels of whole vectors step the rows, to the same bits. SGD and Adagrad without
momentum and weight decay do not change a number without a gradient, so the result equals a step
of the whole table. With other methods, rows without a gradient do not change either: moments wait
(as in PyTorch's SparseAdam), and nothing decays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import ShapeError
from daskdl.kernels.optim import updates
from daskdl.kernels.optim.steps import step
from daskdl.kernels.runtime import grain
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.passes import flat
from daskdl.kernels.runtime.team import over_rows
from daskdl.kernels.vectors.embedding import gather

Array = NDArray[Any]

#: Elements of rows that are stepped together: with their state they stay in the L1 cache.
BLOCK = 1024


def step_rows(
    kernel: Any,
    weights: Array,
    ids: Array,
    rows: Array,
    state: Sequence[Array | None],
    factors: Array,
) -> None:
    """Step the rows ``ids`` (U,), increasing, of weights (N, C) and of their state, in place.

    ``rows`` (U, C) are their gradients. For kernel, state and factors (F,) see
    :func:`daskdl.kernels.optim.steps.step`. If shapes or dtypes do not fit, an id is not in the
    table, or it occurs twice, this raises a ShapeError before any change.
    """
    numbers = _check(weights, ids, rows, state)
    d = flat(rows, weights.dtype).reshape(rows.shape)
    settings = np.array(factors, weights.dtype)
    if kernel in _DIRECT:
        least = grain.least(grain.STREAM, weights.shape[1])
        over_rows(_DIRECT[kernel], (numbers, d), least, weights, *state, settings)
        return
    old = [None if a is None else gather(a, numbers).reshape(-1) for a in state]
    new = step(kernel, gather(weights, numbers).reshape(-1), d.reshape(-1), old, settings[None])
    for array, values in zip([weights, *state], new, strict=True):
        if array is not None:
            array[numbers] = values.reshape(rows.shape)


def _check(weights: Array, ids: Array, rows: Array, state: Sequence[Array | None]) -> Array:
    for name, array in (("weights", weights), *(("state", s) for s in state if s is not None)):
        if array.shape != weights.shape or array.dtype != weights.dtype or array.ndim != 2:
            raise ShapeError(
                f"rows: expected {name} of shape (N, C) like the weights' {weights.shape} "
                f"{weights.dtype}, found {array.shape} {array.dtype}"
            )
        if not (array.flags.c_contiguous and array.flags.writeable):
            raise ShapeError(f"rows: expected C-contiguous writable {name}, to step it in place")
    if rows.shape != (ids.size, weights.shape[1]):
        raise ShapeError(
            f"rows: expected a gradient of shape {(ids.size, weights.shape[1])} for {ids.size} "
            f"ids, found {rows.shape}"
        )
    numbers = flat(ids, np.int64)
    if _in_order(numbers, len(weights)):
        return numbers
    if not 0 <= numbers.min() <= numbers.max() < len(weights):
        raise ShapeError(
            f"rows: expected ids from 0 to {len(weights) - 1}, found {numbers.min()} to "
            f"{numbers.max()}"
        )
    # Otherwise two threads could step one row.
    raise ShapeError("rows: expected increasing ids, each once; see row_gradient")


@jit
def _in_order(ids, n):
    """Return whether ids increase strictly within ``range(n)``."""
    last = -1
    for k in range(ids.size):
        if not last < ids[k] < n:
            return False
        last = ids[k]
    return True


@jit
def _take(table, ids, start, stop, sink):
    """Copy rows to a contiguous vector; return its number of elements."""
    width = table.shape[1]
    for k in range(start, stop):
        source, to = table[ids[k]], sink[(k - start) * width : (k - start + 1) * width]
        for c in range(width):
            to[c] = source[c]
    return (stop - start) * width


@jit
def _give(values, ids, start, stop, table):
    """Undo :func:`_take`."""
    width = table.shape[1]
    for k in range(start, stop):
        source, to = values[(k - start) * width : (k - start + 1) * width], table[ids[k]]
        for c in range(width):
            to[c] = source[c]


@jit
def _room(table, vectors):
    """Return the number of rows stepped together, and memory for ``vectors`` vectors of them."""
    length = max(1, BLOCK // max(1, table.shape[1]))
    return length, np.empty((vectors, length * table.shape[1]), table.dtype)


@jit
def _sgd(ids, rows, weights, factors):
    length, r = _room(weights, 2)
    for start in range(0, ids.size, length):
        stop = min(start + length, ids.size)
        n, d = _take(weights, ids, start, stop, r[0]), rows[start:stop].reshape(-1)
        updates.sgd(r[0][:n], d, r[1][:n], factors, None)
        _give(r[1], ids, start, stop, weights)


@jit
def _adagrad(ids, rows, weights, square, factors):
    length, r = _room(weights, 4)
    for start in range(0, ids.size, length):
        stop = min(start + length, ids.size)
        n, d = _take(weights, ids, start, stop, r[0]), rows[start:stop].reshape(-1)
        _take(square, ids, start, stop, r[1])
        updates.adagrad(r[0][:n], d, r[1][:n], r[2][:n], r[3][:n], factors, None)
        _give(r[2], ids, start, stop, weights)
        _give(r[3], ids, start, stop, square)


@jit
def _adam(ids, rows, weights, mean, square, factors):
    length, r = _room(weights, 6)
    for start in range(0, ids.size, length):
        stop = min(start + length, ids.size)
        n, d = _take(weights, ids, start, stop, r[0]), rows[start:stop].reshape(-1)
        _take(mean, ids, start, stop, r[1])
        _take(square, ids, start, stop, r[2])
        updates.adam(
            r[0][:n], d, r[1][:n], r[2][:n], r[3][:n], r[4][:n], r[5][:n], factors, None
        )  # fmt: skip
        _give(r[3], ids, start, stop, weights)
        _give(r[4], ids, start, stop, mean)
        _give(r[5], ids, start, stop, square)


#: Kernels of the methods that train most tables; other methods gather all rows first.
_DIRECT = {updates.sgd: _sgd, updates.adagrad: _adagrad, updates.adam: _adam}
