"""Depthwise convolution: each channel alone, so that products are of vectors of channels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from daskdl.kernels.convolution.depthwise_square import serves, weight_sums
from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.products.finish import Finish
from daskdl.kernels.products.microkernel import LANES, address
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.llvm import BYTE, I64, all_lanes, load, repeated, store, whole
from daskdl.kernels.runtime.team import over_range, work_over_range
from daskdl.kernels.runtime.threads import least_of

Array = NDArray[np.floating]

#: Vectors of channels, and neighbouring results, whose sums stay in registers together.
VECTORS, WIDE = 4, 3
#: Channels of these vectors.
UNIT = VECTORS * LANES
#: Pixels, or one row if it has more, that the gradient to the weights sums for all taps in turn.
PIXELS = 128


def forward(x: Array, weight: Array, geometry: Geometry, y: Array, add: bool) -> None:
    """Write, or add, to ``y`` the convolution of x (N, H, W, C) with weight (C, kh, kw, 1)."""
    _run(x, geometry.offsets(), geometry.stride, by_tap(weight), y, _whole(y), add)


def forward_packed(x: Array, by_tap: Array, geometry: Geometry, y: Array, finish: Finish) -> None:
    """Write the convolution with weights of :func:`by_tap` to y, and finish it; no residual."""
    work_of(x, by_tap, geometry, y, finish)()


def work_of(
    x: Array, by_tap: Array, geometry: Geometry, y: Array, finish: Finish
) -> Callable[[], object]:
    """Return a function that does :func:`forward_packed` at each call; y is not empty."""
    return _work(x, geometry.offsets(), geometry.stride, by_tap, y, _whole(y), False, finish)


def _whole(y: Array) -> tuple[int, ...]:
    return (0, 0, 1, 1, *y.shape[1:3])


def input_gradient(dy: Array, weight: Array, geometry: Geometry, dx: Array) -> None:
    """Write the gradient to the input; ``dx`` (N, H, W, C)."""
    flat = by_tap(weight)
    for order, offsets, grid in geometry.phases(dx.shape[1], dx.shape[2]):
        _run(dy, offsets, (1, 1), np.ascontiguousarray(flat[order]), dx, grid, False)


def weight_gradient(x: Array, dy: Array, geometry: Geometry) -> Array:
    """Return the gradient to the weights (C, kh, kw, 1)."""
    offsets, channels = geometry.offsets(), x.shape[3]
    dw = np.zeros((len(offsets), channels), x.dtype)
    plan = np.array([*geometry.stride, geometry.kernel[1], geometry.dilation[1]])
    if dy.size:
        units = -(-channels // UNIT)
        work = 10 * len(offsets) * dy.size // channels * UNIT
        over_range(_gradients, units, least_of(work), x, offsets, plan, dy, dw)
    return np.ascontiguousarray(dw.T).reshape(-1, *geometry.kernel, 1)


def by_tap(weight: Array) -> Array:
    """Return weights (C, kh, kw, 1) as (taps, C)."""
    return np.ascontiguousarray(weight.reshape(len(weight), -1).T)


def _run(x, offsets, steps, weight, y, grid, add, finish=None):
    if y.size:
        _work(x, offsets, steps, weight, y, grid, add, finish)()


def _work(x, offsets, steps, weight, y, grid, add, finish):
    plan = np.array([*steps, *grid])
    zeros = np.zeros(x.shape[3], x.dtype)
    least = least_of(10 * len(offsets) * grid[5] * x.shape[3])
    rows = len(y) * grid[4]
    return work_over_range(_sums, rows, least, x, offsets, weight, y, plan, zeros, add, finish)


def _sum_of_products(wide: int, finishes: bool = False) -> Any:
    """Return a numba function that sums products of two vectors of channels.

    Arguments are an array of the dtype; the address of a table of pairs of addresses, int64; the
    number of pairs; channels; the address of the result; whether to add to it; and, for ``wide``
    adjacent results, the bytes from one's first vectors to the next one's and from one result to
    the next. They share the second vectors. One that ``finishes`` also takes the bias' address and
    both limits.
    """

    def typed(like):
        more = (types.intp, like.dtype, like.dtype) if finishes else ()
        signature = types.void(like, *[types.intp] * 4, types.boolean, *[types.intp] * 2, *more)

        def generate(context, builder, signature, args):
            number = context.get_data_type(signature.args[0].dtype)
            size = 4 if signature.args[0].dtype == types.float32 else 8
            _, table, count, channels, target, add, step, target_step, *finish = args
            pairs, to = builder.inttoptr(table, BYTE), builder.inttoptr(target, BYTE)
            offset: Any = whole(0)
            end = builder.mul(channels, whole(size))
            places = [builder.mul(step, whole(i)) for i in range(wide)]
            targets = [builder.gep(to, [builder.mul(target_step, whole(i))]) for i in range(wide)]
            for lanes, vectors in ((LANES, VECTORS), (LANES, 1), (1, 1)):
                if lanes == 1 and finishes:
                    offset = _last_vector(builder, offset, end, size)
                    offset = _channels(
                        builder, number, size, LANES, 1, pairs, count, places, targets, offset,
                        end, add, finish,
                    )  # fmt: skip
                offset = _channels(
                    builder, number, size, lanes, vectors, pairs, count, places, targets, offset,
                    end, add, finish,
                )  # fmt: skip
            return context.get_dummy_value()

        return signature, generate

    if finishes:

        @intrinsic
        def products_and_end(
            context, like, table, count, channels, target, add, step, target_step, bias, low, high
        ):
            return typed(like)

        return products_and_end

    @intrinsic
    def products(context, like, table, count, channels, target, add, step, target_step):
        return typed(like)

    return products


_products, _wide_products = _sum_of_products(1), _sum_of_products(WIDE)
_products_and_end, _wide_products_and_end = (_sum_of_products(n, True) for n in (1, WIDE))


def _last_vector(builder, offset, end, size):
    """Generate where the last channels' vector begins: earlier, over channels that are done."""
    width = whole(LANES * size)
    some = builder.icmp_signed("<", offset, end)
    some = builder.and_(some, builder.icmp_signed(">=", end, width))
    return builder.select(some, builder.sub(end, width), offset)


def _channels(
    builder, number, size, lanes, vectors, pairs, count, places, targets, start, end, add, finish
):
    """Generate the loop over whole blocks of ``lanes * vectors`` channels."""
    kind = ir.VectorType(number, lanes) if lanes > 1 else number
    nothing = ir.Constant(kind, [0.0] * lanes if lanes > 1 else 0.0)
    width, step = lanes * size, whole(lanes * vectors * size)
    before, head = builder.block, builder.append_basic_block("more")
    channels, after = builder.append_basic_block("channels"), builder.append_basic_block("done")
    builder.branch(head)

    builder.position_at_end(head)
    offset = builder.phi(I64)
    offset.add_incoming(start, before)
    following = builder.add(offset, step)
    builder.cbranch(builder.icmp_signed("<=", following, end), channels, after)

    builder.position_at_end(channels)

    def summand(_, pair, *sums):
        a, b = (
            builder.gep(builder.inttoptr(load(builder, pair, 8 * i, I64, 8), BYTE), [offset])
            for i in range(2)
        )
        factors = [load(builder, b, i * width, kind, size) for i in range(vectors)]
        totals = []
        for row, place in enumerate(places):
            pixel = builder.gep(a, [place])
            for i, factor in enumerate(factors):
                value = load(builder, pixel, i * width, kind, size)
                product = builder.fmul(value, factor, flags=("contract",))
                total = sums[row * vectors + i]
                totals.append(builder.fadd(total, product, flags=("contract",)))
        return [builder.gep(pair, [whole(16)]), *totals]

    first = [pairs, *[nothing] * len(places) * vectors]
    _, *totals = repeated(builder, count, first, summand)
    for row, target in enumerate(targets):
        results = totals[row * vectors : (row + 1) * vectors]
        place = builder.gep(target, [offset])
        for i, total in enumerate(results):
            if finish:
                new = _ended(builder, total, finish, offset, i * width, size)
            else:
                there = load(builder, place, i * width, kind, size)
                new = builder.select(add, builder.fadd(there, total), total)
            store(builder, new, place, i * width, size)
    offset.add_incoming(following, builder.block)
    builder.branch(head)
    builder.position_at_end(after)
    return offset


def _ended(builder, total, finish, offset, behind, size):
    """Generate a total of some channels plus its bias, within limits; NaN stays."""
    bias, *limits = finish
    place = builder.gep(builder.inttoptr(bias, BYTE), [offset])
    value = builder.fadd(total, load(builder, place, behind, total.type, size))
    wide = isinstance(total.type, ir.VectorType)
    for limit, sign in zip(limits, "<>", strict=True):
        edge = all_lanes(builder, total.type, limit) if wide else limit
        value = builder.select(builder.fcmp_ordered(sign, value, edge), edge, value)
    return value


@jit
def _sums(x, offsets, weight, y, plan, zeros, add, finish, which, start, stop):
    """Compute the rows ``start`` to ``stop`` of the grid on all images."""
    step_down, step_across, first_row, first_column, down, across, grid_rows, grid_columns = plan
    height, width, channels = x.shape[1:]
    rows, columns = y.shape[1:3]
    size, taps = x.itemsize, offsets.shape[0]
    pixel = channels * size
    table = np.empty((max(1, taps), 2), np.int64)
    entries, at_table = table.reshape(-1), address(table)
    nearest, farthest = 0, 0  # columns that a window reaches to
    for tap in range(taps):
        nearest, farthest = min(nearest, offsets[tap, 1]), max(farthest, offsets[tap, 1])
    for index in range(start, stop):
        n, t = divmod(index, grid_rows)
        target = ((n * rows + first_row + t * down) * columns + first_column) * pixel
        u = 0
        while u < grid_columns:
            begin, end = u * step_across + nearest, (u + WIDE - 1) * step_across + farthest
            inside = begin >= 0 and end < width and u + WIDE <= grid_columns
            count = 0
            for tap in range(taps):
                row, column = t * step_down + offsets[tap, 0], u * step_across + offsets[tap, 1]
                if 0 <= row < height and (inside or 0 <= column < width):
                    entries[2 * count] = address(x) + ((n * height + row) * width + column) * pixel
                    entries[2 * count + 1] = address(weight) + tap * pixel
                    count += 1
            step = step_across * pixel
            if count == 0:  # no tap sees the image
                entries[0] = entries[1] = address(zeros)
                count, step = 1, 0
            to = address(y) + target + u * across * pixel
            if finish is not None:
                bias, low, high = address(finish[0]), finish[2][0], finish[2][1]
                if inside:
                    _wide_products_and_end(
                        x, at_table, count, channels, to, add, step, across * pixel, bias, low,
                        high,
                    )  # fmt: skip
                else:
                    _products_and_end(x, at_table, count, channels, to, add, 0, 0, bias, low, high)
            elif inside:
                _wide_products(x, at_table, count, channels, to, add, step, across * pixel)
            else:
                _products(x, at_table, count, channels, to, add, 0, 0)
            u += WIDE if inside else 1


@jit
def _inside(low, high, step, width, columns):
    """Return start and stop of the windows whose columns low to high exist."""
    first = min(columns, max(0, -(low // step)))
    return first, min(columns, max(first, (width - 1 - high) // step + 1))


@jit
def _pairs(x, dy, plan, first, last, down, across, begin, end, channel, entries, count):
    """List, after ``count`` pairs, pairs of a tap's pixels and their windows' gradients.

    The windows are the columns ``begin`` to ``end`` of the rows ``first`` to ``last`` of dy.
    """
    height, width, channels = x.shape[1:]
    rows, columns = dy.shape[1:3]
    pixel, here = channels * x.itemsize, channel * x.itemsize
    for index in range(first, last):
        n, t = divmod(index, rows)
        row = t * plan[0] + down
        if row < 0 or row >= height:
            continue
        from_x = address(x) + ((n * height + row) * width + across) * pixel + here
        from_y = address(dy) + index * columns * pixel + here
        for u in range(begin, end):
            entries[2 * count] = from_x + u * plan[1] * pixel
            entries[2 * count + 1] = from_y + u * pixel
            count += 1
    return count


@jit
def _gradients(x, offsets, plan, dy, dw, which, start, stop):
    """Compute ``dw`` of the channels of the units ``start`` to ``stop``."""
    first = start * UNIT
    channels = min(stop * UNIT, x.shape[3]) - first
    if serves(offsets, plan, x.shape[3]):
        weight_sums(x, offsets, dy, dw, first, channels)
    else:
        _gradient(x, offsets, plan, dy, dw, first, channels)


@jit
def _gradient(x, offsets, plan, dy, dw, channel, channels):
    """Compute ``dw`` (taps, C) from a channel on, some rows of images at a time.

    Neighbouring taps share their loads of dy where all of them see the image.
    """
    rows, (width, columns) = len(dy) * dy.shape[1], (x.shape[2], dy.shape[2])
    step, kernel_columns, dilation = plan[1:]
    size = x.itemsize
    pixel = x.shape[3] * size
    together = max(1, PIXELS // columns)
    entries = np.empty(2 * together * columns, np.int64)
    at_table = address(entries)
    for first in range(0, rows, together):
        last, tap = min(first + together, rows), 0
        while tap < offsets.shape[0]:
            down, across = offsets[tap]
            target = address(dw) + tap * pixel + channel * size
            wide, low, high = 1, 0, 0
            if tap % kernel_columns + WIDE <= kernel_columns:
                wide = WIDE
                low, high = _inside(across, across + (WIDE - 1) * dilation, step, width, columns)
                count = _pairs(
                    x, dy, plan, first, last, down, across, low, high, channel, entries, 0
                )  # fmt: skip
                if count:
                    _wide_products(
                        x, at_table, count, channels, target, True, dilation * pixel, pixel
                    )
            for k in range(wide):
                begin, end = _inside(across, across, step, width, columns)
                count = 0
                for a, b in ((begin, min(low, end)), (max(high, begin), end)):
                    count = _pairs(
                        x, dy, plan, first, last, down, across, a, b, channel, entries, count
                    )  # fmt: skip
                if count:
                    _products(x, at_table, count, channels, target + k * pixel, True, 0, 0)
                across += dilation
            tap += wide
