"""Arrays with channels, rounded to bytes in one pass: joined, normalised, limited; and widened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from daskdl.kernels.int8.scale import Bytes, Floats, Scale, limits_of
from daskdl.kernels.products.microkernel import LANES
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.llvm import (
    BYTE,
    FLOAT,
    I8,
    I32,
    all_lanes,
    fma,
    lanes_below,
    load,
    size_of,
    store,
    whole,
)
from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.runtime.team import over_range, work_over_range
from daskdl.kernels.runtime.threads import least_of
from daskdl.kernels.vectors.embedding import copy_rows

#: Most channels that are copied one by one.
FEW = 8


class Rounding:
    """Rounds arrays (..., C) to bytes of the scale ``into``, joined along their last axis.

    ``scales`` has the scale of each array of bytes, and None for each of float32. ``lanes``,
    float32 (3, C of the result), are mean, factor and summand of a norm; limits follow. The bytes
    equal those of :func:`~daskdl.kernels.int8.scale.to_floats`,
    :func:`~daskdl.kernels.norms.batchnorm.put_normalised`, the limits and
    :func:`~daskdl.kernels.int8.scale.to_bytes`.
    """

    def __init__(
        self,
        scales: Sequence[Scale | None],
        into: Scale,
        lanes: Floats | None = None,
        low: float = -np.inf,
        high: float = np.inf,
    ) -> None:
        self.scales, self.into, self.lanes, self.limits = tuple(scales), into, lanes, (low, high)

    def __call__(self, *arrays: NDArray[Any]) -> Bytes:
        """Return the bytes (..., all channels) of C-contiguous arrays."""
        y = empty((*arrays[0].shape[:-1], sum(a.shape[-1] for a in arrays)), np.uint8)
        if y.size:
            self.work_of(y, *arrays)()
        return y

    def work_of(self, y: Bytes, *arrays: NDArray[Any]) -> Callable[[], object]:
        """Return a function without arguments that writes a call's result to ``y``.

        It is bound to its arrays and threads. ``y`` is C-contiguous and not empty.
        """
        rows, works, first = y.reshape(-1, y.shape[-1]), [], 0
        for x, scale in zip(arrays, self.scales, strict=True):
            part = x.reshape(len(rows), x.shape[-1])
            works.append(self._work(rows, part, scale, first))
            first += part.shape[1]
        return works[0] if len(works) == 1 else partial(_in_turn, works)

    def _work(
        self, rows: Bytes, part: NDArray[Any], scale: Scale | None, first: int
    ) -> Callable[[], object]:
        if scale == self.into and self.lanes is None and self.limits == (-np.inf, np.inf):
            least = least_of(part.shape[1])
            return work_over_range(copy_rows, len(part), least, part, rows, first)
        factor, zero = scale or (1.0, 0)
        limits = limits_of(*self.limits, self.into)
        numbers = np.array([zero, factor, *limits], np.float32)
        arguments = part, numbers, self.lanes, rows, first
        return work_over_range(_round, len(part), least_of(6 * part.shape[1]), *arguments)


def _in_turn(works: Sequence[Callable[[], object]]) -> None:
    for work in works:
        work()


@intrinsic
def round_lanes(context, x, y, lanes, numbers, at_x, at_y, first, count):
    """Round a vector of x from ``at_x`` on to bytes of y from ``at_y`` on, in a numba function.

    ``lanes`` is None or the array of a :class:`Rounding`, used from the column ``first`` on.
    ``numbers`` are zero and scale of x, the factor to bytes, and what :func:`byte_of` takes. Only
    the first ``count`` lanes are read and written, or all if it is None.
    """
    signature = types.void(x, y, lanes, numbers, *[types.intp] * 3, count)

    def generate(context, builder, signature, args):
        floats = ir.VectorType(FLOAT, LANES)
        mask = None if count is types.none else lanes_below(builder, LANES, args[7])

        def place(kind, array, at):
            return builder.gep(context.make_array(kind)(context, builder, array).data, [at])

        def loaded(pointer):
            number = pointer.type.pointee
            base = builder.bitcast(pointer, BYTE)
            return load(builder, base, 0, ir.VectorType(number, LANES), size_of(number), mask)

        of_x, scale, inverse, low, high, rounding, zero = (
            all_lanes(builder, floats, builder.extract_value(args[3], i)) for i in range(7)
        )
        value = loaded(place(x, args[0], args[4]))
        value = value if value.type == floats else builder.uitofp(value, floats)
        value = builder.fmul(builder.fsub(value, of_x), scale)
        if lanes is not types.none:
            width = context.make_array(lanes)(context, builder, args[2]).shape
            column, row = args[6], builder.extract_value(width, 1)
            rows = [builder.add(column, builder.mul(row, whole(i))) for i in range(3)]
            mean, factor, more = (loaded(place(lanes, args[2], at)) for at in rows)
            value = fma(builder, builder.fsub(value, mean), factor, more)
        value = builder.fmul(value, inverse)
        value = builder.select(builder.fcmp_ordered(">", value, low), value, low)
        value = builder.select(builder.fcmp_ordered("<", value, high), value, high)
        value = builder.fadd(builder.fsub(builder.fadd(value, rounding), rounding), zero)
        integers = builder.fptosi(value, ir.VectorType(I32, LANES))
        numbers_of_y = builder.trunc(integers, ir.VectorType(I8, LANES))
        store(builder, numbers_of_y, builder.bitcast(place(y, args[1], args[5]), BYTE), 0, 1, mask)
        return context.get_dummy_value()

    return signature, generate


@jit
def _round(x, numbers, lanes, y, first, which, start, stop):
    """Round rows ``start`` to ``stop`` to the columns of y from ``first`` on."""
    source, target, width, wide = x.reshape(-1), y.reshape(-1), x.shape[1], y.shape[1]
    if lanes is None and width == wide:  # one long row
        n = (stop - start) * width
        _round_row(source, numbers, lanes, target, start * width, start * width, 0, n)
        return
    for row in range(start, stop):
        to = row * wide + first
        _round_row(source, numbers, lanes, target, row * width, to, first, width)


@jit
def _round_row(x, numbers, lanes, y, begin, to, first, width):
    settings = (
        numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5], numbers[6],
    )  # fmt: skip
    c = 0
    while c + LANES <= width:
        round_lanes(x, y, lanes, settings, begin + c, to + c, first + c, None)
        c += LANES
    if c < width:
        round_lanes(x, y, lanes, settings, begin + c, to + c, first + c, width - c)


def widened(x: Bytes, channels: int, left: int, right: int, zero: int) -> Bytes:
    """Return images widened to ``channels``, and by pixels of the byte ``zero`` on both sides.

    ``x`` (N, H, W, C) may have any order of axes in memory; (..., C) is C-contiguous.
    """
    images = x if x.ndim == 4 else x.reshape(1, -1, *x.shape[-2:])
    n, height, width, _ = images.shape
    y = empty((n * height, width + left + right, channels), np.uint8)
    over_range(_widen, len(y), least_of(2 * y[:1].size), images, y, left, zero)
    return y.reshape(*x.shape[:-2], *y.shape[1:])


@jit
def _widen(x, y, left, zero, which, start, stop):
    """Fill rows ``start`` to ``stop`` of all images of y."""
    width, channels, wide = x.shape[2], x.shape[3], y.shape[2]
    for line in range(start, stop):
        n, i = divmod(line, x.shape[1])
        target = y[line].reshape(-1)
        target[:] = zero
        if channels > FEW and x.strides[3] == 1:
            for j in range(width):
                pixel, at = x[n, i, j], (left + j) * wide
                for c in range(channels):
                    target[np.uintp(at + c)] = pixel[np.uintp(c)]
        else:
            for c in range(channels):
                plane, at = x[n, i, :, c], left * wide + c
                for j in range(width):
                    target[np.uintp(at + j * wide)] = plane[np.uintp(j)]
