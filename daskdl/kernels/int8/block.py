"""A block of rows times a panel of int8 weights, finished in float32 before it is written.

Sums are integers, so that their order does not matter. The other steps are float32, each rounded,
in this order: ``y = sum * scale + bias``; add the residual (for bytes ``(byte - zero) * scale``);
apply the limits. For results in bytes follows ``round(y * inverse) + zero``, to the nearest, ties
to even, within 0 and 255.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from daskdl.compat.numba_compiler import cgutils
from daskdl.kernels.int8.arithmetic import Words, parts_of, way_of
from daskdl.kernels.products.microkernel import LANES
from daskdl.kernels.runtime.llvm import (
    BYTE,
    FLOAT,
    I8,
    I32,
    I64,
    all_lanes,
    changed_if,
    lanes_below,
    load,
    repeated,
    store,
    whole,
)

#: Rows of a block.
ROWS = 6 if LANES == 16 else 4
#: Vectors of a panel, and its columns.
VECTORS = 4 if LANES == 16 else 2
COLUMNS = VECTORS * LANES
#: Bytes of a panel's words for one word of A.
LINE = 4 * COLUMNS * parts_of(way_of(LANES))
#: 1.5 * 2**23: adding it to a number up to 2**22 rounds the number to an integer.
ROUNDING = 12582912.0
#: Kinds of residuals, and of results.
NOTHING, FLOATS, BYTES = 0, 1, 2


def block_of(
    vectors: int, narrow: bool = False, way: str = "", depthwise: bool = False, made: bool = False
) -> Any:  # fmt: skip
    """Return a numba function that computes ``ROWS`` rows of some vectors of a panel's columns.

    The columns of a ``depthwise`` block are channels of A: each has a byte for a weight, the first
    number of a word. A block of sums that are ``made`` only finishes them: its table has addresses
    of rows of int32, and ``shift`` leads to the first of these columns.

    Arguments are the address of a table with ``ROWS`` addresses of rows of A for each segment,
    ``step`` bytes apart (superfluous rows repeat the last one, also in ``places``); bytes from such
    an address to the first channel (``shift``); the number of segments, and of words in each; the
    address of the panel's words, ``LINE`` bytes for each word of A; the address of the columns'
    first summands, int32, and at steps of ``apart`` bytes scale and bias, float32; and the address
    of ``ROWS`` numbers of results and of the residual before these columns.

    The plan has ``apart``; addresses of results and residual, and their kinds; the residual's zero
    and scale; the limits; the results' inverse scale, zero and limits (of ``y * inverse``); and the
    number of columns of a ``narrow`` last vector.
    """

    def generate(context, builder, signature, args):
        table, step, shift, segments, depth, b, columns, places, packed = args
        (
            apart, y, residual, kind_y, kind_residual, zero, scale, low, high, inverse, zero_y,
            least, most, remaining,
        ) = cgutils.unpack_tuple(builder, packed)  # fmt: skip
        zero, zero_y = (builder.trunc(number, I32) for number in (zero, zero_y))
        words = Words(way or way_of(LANES), LANES)
        ints, floats = words.kind, ir.VectorType(FLOAT, LANES)
        shorts = ir.VectorType(I8, LANES)
        width = 4 * LANES
        mask = lanes_below(builder, LANES, remaining) if narrow else None
        of_columns = builder.inttoptr(columns, BYTE)
        starts = [load(builder, of_columns, v * width, ints, 4) for v in range(vectors)]
        if made:
            sums = _read(builder, words, table, shift, starts)
        else:
            of_a = table, step, shift, segments, depth
            sums = _summed(builder, words, *of_a, b, starts, depthwise, mask)

        def per_column(place: int) -> list[Any]:
            line = builder.gep(of_columns, [builder.mul(apart, whole(place))])
            return [load(builder, line, v * width, floats, 4) for v in range(vectors)]

        scales, shifts = per_column(1), per_column(2)
        values = [builder.sitofp(total, floats) for total in sums]
        values = [builder.fmul(v, scales[i % vectors]) for i, v in enumerate(values)]
        values = [builder.fadd(v, shifts[i % vectors]) for i, v in enumerate(values)]

        entries = builder.inttoptr(places, BYTE)
        rows = [load(builder, entries, 8 * i, I64, 8) for i in range(len(sums) // vectors)]

        def pointers(base: Any, size: int) -> list[Any]:
            return [
                builder.inttoptr(builder.add(base, builder.mul(row, whole(size))), BYTE)
                for row in rows
            ]

        def plus_floats(values: list[Any]) -> list[Any]:
            lines = pointers(residual, 4)
            return [
                builder.fadd(
                    v, load(builder, lines[i // vectors], i % vectors * width, floats, 1, mask)
                )
                for i, v in enumerate(values)
            ]

        def plus_bytes(values: list[Any]) -> list[Any]:
            lines, changed = pointers(residual, 1), []
            nothing, factor = (all_lanes(builder, k, x) for k, x in ((ints, zero), (floats, scale)))
            for i, v in enumerate(values):
                read = load(builder, lines[i // vectors], i % vectors * LANES, shorts, 1, mask)
                number = builder.sub(builder.zext(read, ints), nothing)
                product = builder.fmul(builder.sitofp(number, floats), factor)
                changed.append(builder.fadd(v, product))
            return changed

        for kind, change in ((FLOATS, plus_floats), (BYTES, plus_bytes)):
            values = changed_if(builder, _is(builder, kind_residual, kind), values, change)

        with builder.if_else(_is(builder, kind_y, BYTES)) as (then, otherwise):
            with then:
                lines, factor = pointers(y, 1), all_lanes(builder, floats, inverse)
                magic = ir.Constant(floats, [ROUNDING] * LANES)
                more = all_lanes(builder, ints, zero_y)
                for i, v in enumerate(values):
                    v = _within(builder, builder.fmul(v, factor), least, most)
                    bits = builder.bitcast(builder.fadd(v, magic), ints)
                    number = builder.trunc(builder.add(bits, more), shorts)
                    store(builder, number, lines[i // vectors], i % vectors * LANES, 1, mask)
            with otherwise:
                lines = pointers(y, 4)
                for i, v in enumerate(values):
                    v = _within(builder, v, low, high)
                    store(builder, v, lines[i // vectors], i % vectors * width, 1, mask)
        return context.get_dummy_value()

    @intrinsic
    def block(context, table, step, shift, segments, words, b, columns, places, plan):
        return types.void(*[types.intp] * 8, plan), generate

    return block


def _summed(
    builder: ir.IRBuilder, words: Words, table: Any, step: Any, shift: Any, segments: Any,
    depth: Any, b: Any, starts: list[Any], depthwise: bool, mask: Any,
) -> list[Any]:  # fmt: skip
    """Generate the sums of ``ROWS`` rows, row by row, or their depthwise sums."""
    vectors, parts = len(starts), parts_of(words.way)
    bytes_of_lanes = ir.VectorType(I8, words.lanes)

    def segment(_, entry, at_b, *sums):
        rows = [load(builder, entry, 8 * i, I64, 8) for i in range(ROWS)]
        lines = [builder.inttoptr(builder.add(row, shift), BYTE) for row in rows]

        def summand(k, place, *sums):
            totals = []
            right = [
                [
                    load(builder, place, 4 * (words.lanes * v + COLUMNS * part), words.kind, 4)
                    for part in range(1 if depthwise else parts)  # depthwise, a word has one number
                ]
                for v in range(vectors)
            ]
            for i, line in enumerate(lines):
                if not depthwise:
                    word = load(builder, builder.gep(line, [builder.mul(k, whole(4))]), 0, I32, 1)
                    left = [words.left(builder, all_lanes(builder, words.kind, word))] * vectors
                else:
                    each = [
                        load(builder, line, v * words.lanes, bytes_of_lanes, 1, mask)
                        for v in range(vectors)
                    ]
                    left = [words.left(builder, builder.zext(x, words.kind)) for x in each]
                for v, column in enumerate(right):
                    totals.append(words.add(builder, sums[i * vectors + v], left[v], column))
            return [builder.gep(place, [whole(4 * COLUMNS * parts)]), *totals]

        after = repeated(builder, depth, [at_b, *sums], summand)
        return [builder.gep(entry, [step]), *after]

    first = builder.inttoptr(table, BYTE), builder.inttoptr(b, BYTE), *starts * ROWS
    return repeated(builder, segments, [*first], segment)[2:]


def _read(builder: ir.IRBuilder, words: Words, table: Any, shift: Any, starts: list[Any]) -> Any:
    """Generate the loads of the sums of ``ROWS`` rows that are already made, row by row."""
    entries = builder.inttoptr(table, BYTE)
    rows = [builder.add(load(builder, entries, 8 * i, I64, 8), shift) for i in range(ROWS)]
    return [
        builder.add(start, load(builder, builder.inttoptr(row, BYTE), 4 * LANES * v, words.kind, 4))
        for row in rows
        for v, start in enumerate(starts)
    ]


def _is(builder: ir.IRBuilder, value: Any, kind: int) -> Any:
    return builder.icmp_signed("==", value, whole(kind))


def _within(builder: ir.IRBuilder, value: Any, low: Any, high: Any) -> Any:
    """Generate a vector within limits; NaN becomes the lower one."""
    least, most = (all_lanes(builder, value.type, limit) for limit in (low, high))
    value = builder.select(builder.fcmp_ordered(">", value, least), value, least)
    return builder.select(builder.fcmp_ordered("<", value, most), value, most)


multiply = block_of(VECTORS)
#: For one vector of a last panel's columns, which may be narrow.
multiply_narrow = block_of(1, narrow=True)
multiply_channels = block_of(VECTORS, depthwise=True)
multiply_channels_narrow = block_of(1, narrow=True, depthwise=True)
finish = block_of(VECTORS, made=True)
finish_narrow = block_of(1, narrow=True, made=True)
