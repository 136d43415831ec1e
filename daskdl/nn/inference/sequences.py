"""Rules for rows of tables, and for recurrent layers with weights prepared once."""

from __future__ import annotations

from functools import partial
from typing import Any

from daskdl import ops
from daskdl.kernels.products.affine import Affine
from daskdl.kernels.products.packed import packed
from daskdl.kernels.runtime.precision import precision_of
from daskdl.nn.inference.pending import Joined, Pending
from daskdl.nn.inference.prepared import Folded, Taken, rows_of
from daskdl.nn.inference.rules import extension
from daskdl.nn.inference.running import Pass, array_of, result_of, rule
from daskdl.ops.arguments import FLOATS
from daskdl.ops.recurrent.lstm import compute as lstms
from daskdl.tensor import Array, Tensor


@rule(ops.embedding)
def embedding(run: Pass, table: Any, ids: Any, *, padding: int | None = None) -> Any:
    """Return pending rows of the model's own table; a layer may use products of all its rows."""
    matrix, numbers = array_of(table), array_of(ids)
    if run.prepared.key(matrix) is None or matrix.ndim != 2 or matrix.dtype not in FLOATS:
        return None
    if numbers.dtype.kind not in "iu" or not (padding is None or 0 <= padding < len(matrix)):
        return None  # the operation raises the error
    extend = extension(run)

    def compute(joined: Joined) -> Array:
        rows: Array = run.call(rows_of, matrix, numbers, padding)
        return rows if joined.bare else extend(rows, joined)

    pending = Pending(compute, extend, (*numbers.shape, matrix.shape[1]), matrix.dtype)
    pending.source = Taken(matrix, numbers, padding)
    return pending


@rule(ops.lstm)
def lstm(
    run: Pass, x: Any, h: Any, c: Any, weight_input: Any, weight_state: Any, bias: Any = None,
    peepholes: Any = None, **settings: Any,
) -> Any:  # fmt: skip
    """Run an LSTM whose products with its inputs have the same bits in any batch."""
    matrix = array_of(weight_input)
    key = run.prepared.key(matrix)
    if (
        key is None
        or matrix.ndim != 2
        or x.dtype != matrix.dtype
        or x.shape[-1:] != matrix.shape[1:]
    ):
        return None

    affine: Affine = run.prepared.get(("affine", key), lambda: Affine(matrix))
    state = array_of(weight_state)
    key_of_state, name = run.prepared.key(state), precision_of(matrix, state)
    panels = (
        None
        if key_of_state is None
        else run.prepared.get(("lstm", key_of_state), lambda: packed(state.T, name))
    )
    function: Any = partial(lstms, lambda rows, _: affine(rows), panels=panels)
    taken = _taken(x) if run.recorder is None else None
    if taken is not None:
        at = "folded", run.prepared.key(taken.table), taken.padding, key
        folded: Folded = run.prepared.get(at, lambda: Folded(taken.table, affine, taken.padding))
        function = partial(function, sums=partial(folded, taken))
    values = h, c, weight_input, weight_state, bias, peepholes
    arrays = [value.data if isinstance(value, Tensor) else value for value in values]
    arrays.insert(0, x if taken is not None else array_of(x))
    return tuple(map(Tensor, run.call(result_of, function, *arrays, **settings)))


def _taken(x: Any) -> Taken | None:
    """Return pending rows of a table (T, N) for a sequence (N, T, C); None for another x."""
    if not (isinstance(x, Pending) and x.waiting and x.joined.bare):
        return None
    if not isinstance(x.source, Taken):
        return None
    if x.axes == (1, 0, 2):
        return x.source
    return x.source._replace(ids=x.source.ids.T) if x.axes is None and x.ndim == 3 else None
