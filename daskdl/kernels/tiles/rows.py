"""Rows of bfloat16 numbers for tiles: round, copy, fill and pair them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from daskdl.compat.numba_compiler import cgutils
from daskdl.kernels.products.bfloat16 import round_row
from daskdl.kernels.products.bfloat16_pair import round_lines, rounded_numbers
from daskdl.kernels.products.microkernel import LANES, address
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.llvm import (
    BYTE,
    I8,
    I32,
    all_lanes,
    lanes_below,
    load,
    store,
    whole,
)
from daskdl.kernels.tiles.instructions import LINE, SIDE

_LINE = ir.VectorType(I8, LINE)


@intrinsic
def copy_bytes(context, source, target, count):
    """Copy bytes from one address to another."""

    def generate(context, builder, signature, args):
        source, target, count = args

        def copy(offset: Any, kind: Any, mask: Any = None) -> None:
            places = [builder.inttoptr(builder.add(a, offset), BYTE) for a in (source, target)]
            store(builder, load(builder, places[0], 0, kind, 1, mask), places[1], 0, 1, mask)

        _by_lines(builder, count, copy)
        return context.get_dummy_value()

    return types.void(*[types.intp] * 3), generate


@intrinsic
def fill_bytes(context, target, count, byte):
    """Write a byte ``count`` times to an address."""

    def generate(context, builder, signature, args):
        target, count, byte = args
        byte = builder.trunc(byte, I8)

        def fill(offset: Any, kind: Any, mask: Any = None) -> None:
            value = byte if kind == I8 else all_lanes(builder, kind, byte)
            store(builder, value, builder.inttoptr(builder.add(target, offset), BYTE), 0, 1, mask)

        _by_lines(builder, count, fill)
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, types.intp), generate


def _by_lines(builder: ir.IRBuilder, count: Any, write: Callable[..., None]) -> None:
    """Generate ``write(offset, kind, mask)`` for each 64 of some bytes, and for those that remain.

    A call of memcpy or memset for each row takes longer.
    """
    with cgutils.for_range(builder, builder.lshr(count, whole(6))) as loop:
        write(builder.mul(loop.index, whole(LINE)), _LINE)
    rest = builder.and_(count, whole(LINE - 1))
    after = builder.sub(count, rest)
    if LANES < SIDE:  # no masks
        with cgutils.for_range(builder, rest) as loop:
            write(builder.add(after, loop.index), I8)
        return
    with builder.if_then(builder.icmp_signed("!=", rest, whole(0))):
        write(after, _LINE, lanes_below(builder, LINE, rest))


@intrinsic
def pair_rows(context, like, first, second, target, columns):
    """Write 16 pairs of numbers of two rows, from ``columns`` columns; the rest are zeros.

    ``like`` has the rows' dtype: float32, which is rounded, or uint16, bfloat16 numbers. ``first``
    and ``second`` are addresses of the rows for lower and upper halves, 0 for zeros; ``target`` is
    an address, too.
    """
    signature = types.void(like, *[types.intp] * 4)

    def generate(context, builder, signature, args):
        _, first, second, target, columns = args
        halves = [
            builder.zext(
                rounded_numbers(builder, signature.args[0].dtype == types.float32, place, columns),
                ir.VectorType(I32, SIDE),
            )
            for place in (first, second)
        ]
        shift = ir.Constant(halves[1].type, [16] * SIDE)
        pairs = builder.or_(halves[0], builder.shl(halves[1], shift))
        store(builder, pairs, builder.inttoptr(target, BYTE), 0, 4)
        return context.get_dummy_value()

    return signature, generate


@jit
def write_row(x, source, channels, target, pairs):
    """Write the numbers of a pixel at an address, rounded, and zeros up to ``pairs`` pairs."""
    if x.itemsize == 4 and channels % (2 * SIDE) == 0:
        round_lines(source, target, channels // (2 * SIDE))
    elif x.itemsize == 4:
        round_row(source, channels, target, pairs)
    else:
        copy_bytes(source, target, 2 * channels)
        if 2 * pairs > channels:
            fill_bytes(target + 2 * channels, 4 * pairs - 2 * channels, 0)


@jit
def place_of(phase, sizes, position):
    """Return image, row and column of a phase at a position; the image -1 stands for zeros."""
    line, column = divmod(position, sizes[2])
    image, row = divmod(line, sizes[1])
    inside = (image >= 0) & (image < sizes[0]) & (row < phase[2]) & (column < phase[3])
    return (image if inside else -1), row * sizes[3] + phase[0], column * sizes[4] + phase[1]


@jit
def write_positions(x, phases, sizes, first, last, target, pitch, pairs, byte=0):
    """Write the rows of the positions ``first`` to ``last`` of all phases, one after the other.

    x (N, H, W, C) is float32, or uint16: bfloat16 numbers; phases and sizes come from
    :class:`~daskdl.kernels.tiles.positions.Positions`. Rows at the target's address are ``pitch``
    bytes apart; each has ``pairs`` pairs, at least as many as a pixel. Positions outside of the
    images are filled with a byte.
    """
    height, width, channels = x.shape[1:]
    size = channels * x.itemsize
    for k in range(phases.shape[0]):
        phase = phases[k]
        position = first
        while position < last:
            line, column = divmod(position, sizes[2])
            image, row = divmod(line, sizes[1])
            end = min(last, position + sizes[2] - column)
            real = (image >= 0) & (image < sizes[0]) & (row < phase[2])
            pixels = max(0, min(end - position, phase[3] - column)) if real else 0
            source = address(x) + (
                ((image * height + row * sizes[3] + phase[0]) * width)
                + column * sizes[4] + phase[1]
            ) * size  # fmt: skip
            for _ in range(pixels):
                write_row(x, source, channels, target, pairs)
                source += sizes[4] * size
                target += pitch
            for _ in range(end - position - pixels):
                fill_bytes(target, 4 * pairs, byte)
                target += pitch
            position = end


@jit
def addresses_of(x, phase, sizes, first, table):
    """Write the addresses of the pixels of some positions, and 0 for zeros."""
    height, width, channels = x.shape[1:]
    for i in range(table.size):
        image, row, column = place_of(phase, sizes, first + i)
        place = ((image * height + row) * width + column) * channels * x.itemsize
        table[i] = address(x) + place if image >= 0 else 0
