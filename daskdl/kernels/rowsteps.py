"""Steps of optim methods on the rows of a table that a batch touched, in place.

The gradient comes as (ids, rows), each id once, as :func:`daskdl.kernels.embedding.row_gradient`
returns it. Without momentum and weight decay, a row whose gradient is zero stays as it is: SGD and
Adagrad then do exactly what they do to the whole table. Adam does not: its moments of untouched
rows wait until these are touched again (PyTorch's SparseAdam), and SGD with momentum has no such
form.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import ShapeError
from daskdl.kernels.jit import fastjit
from daskdl.kernels.passes import flat
from daskdl.kernels.team import over_rows

Array = NDArray[Any]

#: Elements below which a second thread costs more than it brings.
LEAST = 1 << 15


def sgd_rows(weights: Array, ids: Array, rows: Array, *, rate: float) -> None:
    """Step the rows ``ids`` of ``weights`` (N, C) against their gradient ``rows`` (U, C).

    Raises
    ------
    ShapeError
        When shapes or dtypes do not fit, an id is not in the table, or occurs twice; before
        anything is changed. So do the other functions.
    """
    _run(_sgd, weights, ids, rows, (), [rate])


def adagrad_rows(
    weights: Array,
    ids: Array,
    rows: Array,
    state: dict[str, Array],
    *,
    rate: float,
    epsilon: float = 1e-10,
) -> None:
    """Step by Adagrad; ``state`` has the sums of squares under ``"square"``, (N, C)."""
    _run(_adagrad, weights, ids, rows, (state["square"],), [rate, epsilon])


def adam_rows(
    weights: Array,
    ids: Array,
    rows: Array,
    state: dict[str, Array],
    *,
    iteration: int,
    rate: float = 1e-3,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
) -> None:
    """Step by Adam; ``state`` has both moments, ``"mean"`` and ``"square"``, (N, C).

    ``iteration`` counts from 0, and the bias of the moments is corrected as if every row had been
    touched in each.
    """
    correction = math.sqrt(1 - beta2 ** (iteration + 1))
    step = rate * correction / (1 - beta1 ** (iteration + 1))
    factors = [beta1, 1 - beta1, beta2, 1 - beta2, step, epsilon * correction]
    _run(_adam, weights, ids, rows, (state["mean"], state["square"]), factors)


def _run(
    kernel: Any, weights: Array, ids: Array, rows: Array, state: Any, factors: list[float]
) -> None:
    for name, array in (("weights", weights), *(("state", s) for s in state)):
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
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < len(weights):
        raise ShapeError(
            f"rows: expected ids from 0 to {len(weights) - 1}, found {numbers.min()} to "
            f"{numbers.max()}"
        )
    if (np.diff(numbers) <= 0).any():  # two threads would step one row
        raise ShapeError("rows: expected increasing ids, each once; see row_gradient")
    d = flat(rows, weights.dtype).reshape(rows.shape)
    settings = np.array(factors, weights.dtype)
    least = max(1, LEAST // max(1, weights.shape[1]))
    over_rows(kernel, (numbers, d), least, weights, *state, settings)


@fastjit
def _sgd(ids, rows, weights, factors):  # type: ignore[no-untyped-def]
    for k in range(ids.size):
        w, d = weights[ids[k]], rows[k]
        for c in range(d.size):
            w[c] -= factors[0] * d[c]


@fastjit
def _adagrad(ids, rows, weights, square, factors):  # type: ignore[no-untyped-def]
    rate, epsilon = factors[0], factors[1]
    for k in range(ids.size):
        w, v, d = weights[ids[k]], square[ids[k]], rows[k]
        for c in range(d.size):
            total = v[c] + d[c] * d[c]
            new = w[c] - rate * d[c] / (np.sqrt(total) + epsilon)
            v[c] = total
            w[c] = new


@fastjit
def _adam(ids, rows, weights, mean, square, factors):  # type: ignore[no-untyped-def]
    b1, new1, b2, new2 = factors[0], factors[1], factors[2], factors[3]
    rate, epsilon = factors[4], factors[5]
    for k in range(ids.size):
        w, m, v, d = weights[ids[k]], mean[ids[k]], square[ids[k]], rows[k]
        for c in range(d.size):
            first = b1 * m[c] + new1 * d[c]
            second = b2 * v[c] + new2 * d[c] * d[c]
            new = w[c] - rate * first / (np.sqrt(second) + epsilon)
            m[c] = first
            v[c] = second
            w[c] = new
