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
from daskdl.kernels.optim.steps import step
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.passes import flat
from daskdl.kernels.vectors.embedding import gather, put_rows

Array = NDArray[Any]


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
    old = [None if a is None else gather(a, numbers).reshape(-1) for a in state]
    before = gather(weights, numbers).reshape(-1)
    new = step(kernel, before, d.reshape(-1), old, settings[None], overwrite=True)
    for array, values in zip([weights, *state], new, strict=True):
        if array is not None:
            put_rows(array, numbers, values.reshape(rows.shape))


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
