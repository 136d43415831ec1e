"""Arrays joined, normed and limited in one pass, and rounded to bfloat16 for products of tiles."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from daskdl.compat.numba_compiler import cgutils
from daskdl.kernels.products.bfloat16_pair import AHEAD, round_two
from daskdl.kernels.products.microkernel import address
from daskdl.kernels.runtime import grain
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.llvm import (
    BYTE,
    FLOAT,
    all_lanes,
    fetch_line,
    fma,
    load,
    store,
    whole,
)
from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.runtime.team import work_over_range
from daskdl.kernels.tiles.instructions import LINE, SIDE

Array = NDArray[Any]
Halves = NDArray[np.uint16]

#: Channels of each array are a multiple of this, a line of rounded numbers.
UNIT = 2 * SIDE
#: Rows that are written together, so that lines of the result stay in L1.
ROWS = 32


class Joining:
    """Joins float32 arrays (..., C) along their last axis, and rounds them to bfloat16.

    ``lanes``, float32 (3, C of the result), are mean, factor and summand of a norm; limits follow.
    The numbers equal those of :func:`~daskdl.kernels.norms.batchnorm.put_normalised`, rounded; no
    zero has a sign.
    """

    def __init__(
        self, lanes: NDArray[np.float32] | None, low: float = -np.inf, high: float = np.inf
    ) -> None:
        self.lanes, self.limits = lanes, np.array([low, high], np.float32)

    def __call__(self, *arrays: Array) -> Halves:
        """Return the numbers (..., all channels) of C-contiguous arrays."""
        y = empty((*arrays[0].shape[:-1], sum(a.shape[-1] for a in arrays)), np.uint16)
        if y.size:
            self.work_of(y, *arrays)()
        return y

    def work_of(self, y: Halves, *arrays: Array) -> Callable[[], object]:
        """Return a function without arguments that writes a call's result to ``y``.

        It is bound to its arrays and threads. ``y`` is C-contiguous and not empty.
        """
        rows = y.reshape(-1, y.shape[-1])
        lanes = self.lanes
        if lanes is None:  # these change no number
            lanes = np.zeros((3, rows.shape[1]), np.float32)
            lanes[1] = 1
        places = np.array([(a.ctypes.data, a.shape[-1]) for a in arrays], np.int64)
        least = grain.least(grain.STREAM, rows.shape[1])
        work = work_over_range(_write, len(rows), least, places, lanes, self.limits, rows)
        return partial(_while_there, arrays, work)


def joinable(*arrays: Array) -> bool:
    """Return whether these arrays can be joined."""
    return all(a.dtype == np.float32 and a.shape[-1] % UNIT == 0 for a in arrays)


def _while_there(arrays: tuple[Array, ...], work: Callable[[], object]) -> None:
    """Do work that uses addresses of arrays, and keep these alive meanwhile."""
    work()


@jit
def _write(places, lanes, limits, y, which, start, stop):
    """Write the rows ``start`` to ``stop``."""
    wide = y.shape[1]
    for first in range(start, stop, ROWS):
        end, before = min(first + ROWS, stop), 0
        for p in range(places.shape[0]):
            width = places[p, 1]
            for row in range(first, end):
                _write_lines(
                    places[p, 0] + row * width * 4, address(y) + (row * wide + before) * 2,
                    width // UNIT, address(lanes) + before * 4, wide * 4, limits[0], limits[1],
                )  # fmt: skip
            before += width


@intrinsic
def _write_lines(context, source, target, count, lanes, size, low, high):
    """Write ``count`` lines of normed, limited and rounded numbers; lanes are ``size`` bytes."""

    def generate(context, builder, signature, args):
        source, target, count, lanes, size, low, high = args
        kind = ir.VectorType(FLOAT, SIDE)
        least, most = (all_lanes(builder, kind, limit) for limit in (low, high))

        def at(base, number, line):
            return builder.inttoptr(builder.add(base, builder.mul(number, whole(line))), BYTE)

        with cgutils.for_range(builder, count) as loop:
            values = []
            for half in range(0, 2 * LINE, LINE):
                place = builder.gep(at(source, loop.index, 2 * LINE), [whole(half)])
                fetch_line(builder, builder.gep(place, [whole(AHEAD)]))
                mean, factor, summand = (
                    load(builder, at(builder.add(lanes, more), loop.index, 2 * LINE), half, kind, 4)
                    for more in (whole(0), size, builder.mul(size, whole(2)))
                )
                value = builder.fsub(load(builder, place, 0, kind, 4), mean)
                value = fma(builder, value, factor, summand)
                value = builder.fadd(value, ir.Constant(kind, None))  # +0 for -0
                # NaN stays.
                value = builder.select(builder.fcmp_ordered("<", value, least), least, value)
                value = builder.select(builder.fcmp_ordered(">", value, most), most, value)
                values.append(value)
            store(builder, round_two(builder, *values), at(target, loop.index, LINE), 0, 2)
        return context.get_dummy_value()

    return types.void(*[types.intp] * 5, types.float32, types.float32), generate
