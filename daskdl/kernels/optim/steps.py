"""One step of an optim method over a vector, in one pass; factors may differ by range.

Memory limits such a pass: Adam reads four vectors and writes three. The new ones bypass the caches
(:mod:`daskdl.kernels.runtime.passes`), so that the pass reads only what it needs.

The kernels are compiled without the reordering of :func:`~daskdl.kernels.runtime.jit.fastjit`: an
element has the same bits in a vector register and in the rest at a loop's end. So a worker that
owns a slice of the weights gets the bits of the whole step. A pass that waits for memory loses no
time by this.
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
    """Return new weights and state; the given arrays themselves if they were changed in place.

    The kernel is ``kernel(weights, gradient, *state, new weights, *new state, factors, past)`` of
    vectors. What it writes at ``k`` depends only on what it read at ``k`` before. It stores with
    :func:`~daskdl.kernels.runtime.passes.renew` and ends with
    :func:`~daskdl.kernels.runtime.passes.drain`. A state of None, which the method does not use,
    reaches it as None twice.

    ``factors`` (K, F), of the weights' dtype, have a row for each kind of range. ``ranges`` are the
    ends of consecutive ranges and each one's row, or -1 for a range that does not change; without
    it, all is one range. With ``overwrite``, weights and state are changed in place if they are
    writable vectors of one dtype; this needs no other memory. If lengths differ, as in
    another model's state, a ShapeError is raised before any write.
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
        if past and start % line:  # stores past the caches have to begin at a cache line
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
    """Return whether a kernel may write to the array itself."""
    flags = array.flags
    return bool(array.dtype == dtype and flags.c_contiguous and flags.aligned and flags.writeable)
