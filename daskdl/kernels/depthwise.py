"""Depthwise convolution: each channel by itself, so that vectors of channels are all there is."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from daskdl.kernels.geometry import Geometry
from daskdl.kernels.jit import jit
from daskdl.kernels.microkernel import LANES, address, load, store
from daskdl.kernels.threads import in_parallel

Array = NDArray[np.floating]

#: Vectors of channels whose sums stay in registers together.
VECTORS = 4
#: Pixels, or one row if it has more, that the gradient to the weights sums up for tap after tap.
PIXELS = 128

_I64 = ir.IntType(64)
_BYTE = ir.IntType(8).as_pointer()


def forward(x: Array, weight: Array, geometry: Geometry, y: Array, add: bool) -> None:
    """Write, or add, to ``y`` the convolution of x (N, H, W, C) with weight (C, kh, kw, 1)."""
    offsets = geometry.offsets()
    _run(x, offsets, geometry.stride, _by_tap(weight), y, (0, 0, 1, 1, *y.shape[1:3]), add)


def input_gradient(dy: Array, weight: Array, geometry: Geometry, dx: Array) -> None:
    """Write the gradient to the input; ``dx`` (N, H, W, C)."""
    flat = _by_tap(weight)
    for order, offsets, grid in geometry.phases(dx.shape[1], dx.shape[2]):
        _run(dy, offsets, (1, 1), np.ascontiguousarray(flat[order]), dx, grid, False)


def weight_gradient(x: Array, dy: Array, geometry: Geometry) -> Array:
    """Return the gradient to the weights (C, kh, kw, 1)."""
    offsets = geometry.offsets()
    dw = np.zeros((len(offsets), x.shape[3]), x.dtype)
    steps = np.array(geometry.stride)
    if dy.size:
        in_parallel(
            lambda start, stop: _gradient(x, offsets, steps, dy, dw, start, stop), len(offsets)
        )
    return np.ascontiguousarray(dw.T).reshape(-1, *geometry.kernel, 1)


def _by_tap(weight: Array) -> Array:
    return np.ascontiguousarray(weight.reshape(len(weight), -1).T)


def _run(  # type: ignore[no-untyped-def]
    x, offsets, steps, weight, y, grid, add
):
    plan = np.array([*steps, *grid])
    zeros = np.zeros(x.shape[3], x.dtype)
    if y.size:
        in_parallel(
            lambda start, stop: _sums(x, offsets, weight, y, plan, zeros, add, start, stop),
            len(y) * grid[4],
        )


@intrinsic
def _products(context, like, table, count, channels, target, add):  # type: ignore[no-untyped-def]
    """Sum ``count`` products of two vectors of channels, inside a numba function.

    ``table`` is the address of pairs of addresses, int64; the result goes to ``target``.
    """
    signature = types.void(like, *[types.intp] * 4, types.boolean)

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        number = context.get_data_type(signature.args[0].dtype)
        size = 4 if signature.args[0].dtype == types.float32 else 8
        _, table, count, channels, target, add = args
        pairs, to = builder.inttoptr(table, _BYTE), builder.inttoptr(target, _BYTE)
        offset: Any = ir.Constant(_I64, 0)
        end = builder.mul(channels, ir.Constant(_I64, size))
        for lanes, vectors in ((LANES, VECTORS), (LANES, 1), (1, 1)):
            offset = _channels(
                builder, number, size, lanes, vectors, pairs, count, to, offset, end, add
            )
        return context.get_dummy_value()

    return signature, generate


def _channels(  # type: ignore[no-untyped-def]
    builder, number, size, lanes, vectors, pairs, count, to, start, end, add
):
    """Generate the loop over blocks of ``lanes * vectors`` channels while there are so many."""
    kind = ir.VectorType(number, lanes) if lanes > 1 else number
    nothing = ir.Constant(kind, [0.0] * lanes if lanes > 1 else 0.0)
    width, step = lanes * size, ir.Constant(_I64, lanes * vectors * size)
    before = builder.block
    head, outer = builder.append_basic_block("more"), builder.append_basic_block("channels")
    inner, finish = builder.append_basic_block("summand"), builder.append_basic_block("finish")
    after = builder.append_basic_block("done")
    builder.branch(head)

    builder.position_at_end(head)
    offset = builder.phi(_I64)
    offset.add_incoming(start, before)
    following = builder.add(offset, step)
    builder.cbranch(builder.icmp_signed("<=", following, end), outer, after)

    builder.position_at_end(outer)
    builder.branch(inner)

    builder.position_at_end(inner)
    left, pair = builder.phi(_I64), builder.phi(_BYTE)
    left.add_incoming(count, outer)
    pair.add_incoming(pairs, outer)
    sums = [builder.phi(kind) for _ in range(vectors)]
    a, b = (
        builder.gep(builder.inttoptr(load(builder, pair, 8 * i, _I64, 8), _BYTE), [offset])
        for i in range(2)
    )
    for i, old in enumerate(sums):
        product = builder.fmul(
            load(builder, a, i * width, kind, size),
            load(builder, b, i * width, kind, size),
            flags=("contract",),
        )
        new = builder.fadd(old, product, flags=("contract",))
        old.add_incoming(nothing, outer)
        old.add_incoming(new, inner)
    rest = builder.sub(left, ir.Constant(_I64, 1))
    left.add_incoming(rest, inner)
    pair.add_incoming(builder.gep(pair, [ir.Constant(_I64, 16)]), inner)
    totals = [phi.incomings[1][0] for phi in sums]
    builder.cbranch(builder.icmp_signed(">", rest, ir.Constant(_I64, 0)), inner, finish)

    builder.position_at_end(finish)
    place = builder.gep(to, [offset])
    for i, total in enumerate(totals):
        there = load(builder, place, i * width, kind, size)
        store(
            builder, builder.select(add, builder.fadd(there, total), total), place, i * width, size
        )
    offset.add_incoming(following, builder.block)
    builder.branch(head)
    builder.position_at_end(after)
    return offset


@jit
def _sums(x, offsets, weight, y, plan, zeros, add, start, stop):  # type: ignore[no-untyped-def]
    """Compute the rows ``start`` to ``stop`` of the grid on all images."""
    step_down, step_across, first_row, first_column, down, across, grid_rows, grid_columns = plan
    height, width, channels = x.shape[1:]
    rows, columns = y.shape[1:3]
    size = x.itemsize
    pixel = channels * size
    table = np.empty((max(1, offsets.shape[0]), 2), np.int64)
    entries, at_table = table.reshape(-1), address(table)
    for index in range(start, stop):
        n, t = divmod(index, grid_rows)
        target = ((n * rows + first_row + t * down) * columns + first_column) * pixel
        for u in range(grid_columns):
            count = 0
            for tap in range(offsets.shape[0]):
                row, column = t * step_down + offsets[tap, 0], u * step_across + offsets[tap, 1]
                if 0 <= row < height and 0 <= column < width:
                    entries[2 * count] = address(x) + ((n * height + row) * width + column) * pixel
                    entries[2 * count + 1] = address(weight) + tap * pixel
                    count += 1
            if count == 0:  # no tap sees the image
                entries[0] = entries[1] = address(zeros)
                count = 1
            _products(x, at_table, count, channels, address(y) + target + u * across * pixel, add)


@jit
def _gradient(x, offsets, steps, dy, dw, start, stop):  # type: ignore[no-untyped-def]
    """Compute the taps ``start`` to ``stop`` of ``dw`` (taps, C), some rows at a time."""
    height, width, channels = x.shape[1:]
    images, rows, columns = dy.shape[:3]
    pixel = channels * x.itemsize
    together = max(1, PIXELS // columns)
    table = np.empty((together * columns, 2), np.int64)
    entries, at_table = table.reshape(-1), address(table)
    for first in range(0, images * rows, together):
        for tap in range(start, stop):
            count = 0
            for index in range(first, min(first + together, images * rows)):
                n, t = divmod(index, rows)
                row, column = t * steps[0] + offsets[tap, 0], offsets[tap, 1]
                if row < 0 or row >= height:
                    continue
                from_x = address(x) + ((n * height + row) * width + column) * pixel
                from_y = address(dy) + index * columns * pixel
                for _ in range(columns):
                    if 0 <= column < width:
                        entries[2 * count], entries[2 * count + 1] = from_x, from_y
                        count += 1
                    column += steps[1]
                    from_x += steps[1] * pixel
                    from_y += pixel
            if count:
                _products(x, at_table, count, channels, address(dw) + tap * pixel, True)
