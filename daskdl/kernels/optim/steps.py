"""One step of an optim method over a vector: in one pass, with factors that differ by range.

What limits such a pass is memory: Adam reads four vectors and writes three. The new ones are
written past the caches (:mod:`daskdl.kernels.runtime.passes`), so that nothing is read that is
not needed.

The kernels are compiled without any of the liberties that
:func:`~daskdl.kernels.runtime.jit.fastjit` takes: whether an element is computed in a vector
register or in what is left at a loop's end, its bits are the same. So a worker that owns a slice of
the weights gets the bits of the whole step, and a pass that waits for memory loses nothing by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import ShapeError
from daskdl.kernels.runtime.memory import ALIGNMENT, empty
from daskdl.kernels.runtime.passes import LEAST_UNITS, UNIT, flat, streams
from daskdl.kernels.runtime.team import over_rows

Array = NDArray[Any]


def step(
    kernel: Any,
    weights: Array,
    gradient: Array,
    state: Sequence[Array | None],
    factors: Array,
    ranges: tuple[Array, Array] | None = None,
    overwrite: bool = False,
) -> list[Any]:
    """Return new weights and state: the very arrays that were given, where they were changed.

    The kernel is ``kernel(weights, gradient, *state, new weights, *new state, factors, past)`` of
    vectors; what it writes at ``k`` depends on what it reads at ``k`` alone, before. It stores by
    :func:`~daskdl.kernels.runtime.passes.renew` and ends with
    :func:`~daskdl.kernels.runtime.passes.drain`. None as a state, for what the method does
    without, reaches it as None, twice.

    Factors (K, F), of the weights' dtype, have a row for each kind of range; ``ranges`` are where
    consecutive ranges end and which row each has, or -1 for one that stays as it is; without, all
    is one range. With ``overwrite`` weights and state may be changed, and are where they are
    writable vectors of one dtype; no other memory is needed then. A ShapeError is raised, before
    anything is written, when lengths differ, as those of a state of another model.
    """
    for name, array in (("gradient", gradient), *(("state", a) for a in state)):
        if array is not None and np.shape(array) != weights.shape:
            raise ShapeError(
                f"update: expected {name} of shape {weights.shape} like the weights, found "
                f"{np.shape(array)}; take the state of this model, as init() makes it"
            )
    end = weights.size if ranges is None or not len(ranges[0]) else ranges[0][-1]
    if end != weights.size:
        raise ShapeError(
            f"update: expected a vector of {end} numbers, as the layout has them, found "
            f"{weights.size}; call on(Layout.of(model)) for this model"
        )
    flat_arrays = [
        None if a is None else flat(a, weights.dtype) for a in (weights, gradient, *state)
    ]
    before = [weights, *state]
    over = overwrite and all(a is None or _changes(a, weights.dtype) for a in before)
    new = [None if a is None or over else empty(weights.size, weights.dtype) for a in before]
    arrays = flat_arrays + new
    past = True if not over and streams(*(a for a in new if a is not None)) else None
    line = ALIGNMENT // weights.dtype.itemsize

    def run(start: int, stop: int, row: Any, past: bool | None) -> None:
        here = tuple(a if a is None else a[start:stop] for a in arrays)
        over_rows(kernel, here, LEAST_UNITS, row, past, unit=UNIT)

    start = 0
    for end, kind in zip(*ranges, strict=True) if ranges else [(weights.size, 0)]:
        if kind < 0:
            for old, to in zip([flat_arrays[0], *flat_arrays[2:]], new, strict=True):
                if old is not None and to is not None:
                    to[start:end] = old[start:end]
            start = end
            continue
        row = factors[kind]
        if past and start % line:  # what goes past the caches has to begin with a line of them
            middle = min(end, start + -start % line)
            run(start, middle, row, None)
            start = middle
        if start < end:
            run(start, end, row, past)
        start = end
    if over:
        return before
    return [None if a is None else a.reshape(weights.shape) for a in new]


def _changes(array: Array, dtype: Any) -> bool:
    """Whether a kernel may write to these very numbers."""
    flags = array.flags
    return bool(array.dtype == dtype and flags.c_contiguous and flags.aligned and flags.writeable)
