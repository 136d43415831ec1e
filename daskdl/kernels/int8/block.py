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
    called,
    changed_if,
    fetch_line,
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
#: Bytes by which prefetches of a panel's words are ahead of the products.
AHEAD = 4096
#: 1.5 * 2**23: adding it to a number up to 2**22 rounds the number to an integer.
ROUNDING = 12582912.0
#: Kinds of residuals, and of results.
NOTHING, FLOATS, BYTES = 0, 1, 2


def block_of(
    vectors: int, narrow: bool = False, way: str = "", depthwise: bool = False
) -> Any:  # fmt: skip
    """Return a numba function that computes ``ROWS`` rows of some vectors of a panel's columns.

    The columns of a ``depthwise`` block are channels of A: each has a byte for a weight, the first
    number of a word.

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
        words = Words(way or way_of(LANES), LANES)
        end = _End(builder, packed, columns, vectors, narrow)
        of_a = table, step, shift, segments, depth
        sums = _summed(builder, words, *of_a, b, end.starts, depthwise, end.masks[0])
        entries = builder.inttoptr(places, BYTE)
        rows = [load(builder, entries, 8 * i, I64, 8) for i in range(ROWS)]
        end.write(sums, rows)
        return context.get_dummy_value()

    @intrinsic
    def block(context, table, step, shift, segments, words, b, columns, places, plan):
        return types.void(*[types.intp] * 8, plan), generate

    return block


def finish_of(narrow: bool = False) -> Any:
    """Return a numba function that finishes rows of a panel's sums, which are in memory.

    Arguments are the address of the sums, int32, ``COLUMNS`` a row; the number of rows; the address
    of the rows' numbers of results, negative for rows that are no results, with as many numbers of
    later rows behind them; and the columns and the plan of :func:`block_of`. A ``narrow`` panel has
    fewer columns.
    """

    def generate(context, builder, signature, args):
        sums, count, places, columns, packed = args
        end = _End(builder, packed, columns, VECTORS, narrow)
        with cgutils.for_range(builder, count) as loop:
            entry = builder.add(places, builder.mul(loop.index, whole(8)))
            place = builder.inttoptr(entry, BYTE)
            row = load(builder, place, 0, I64, 8)
            with builder.if_then(builder.icmp_signed(">=", row, whole(0))):
                line = builder.mul(loop.index, whole(4 * COLUMNS))
                source = builder.inttoptr(builder.add(sums, line), BYTE)
                end.fetch(builder.gep(place, [builder.mul(count, whole(8))]))
                totals = [
                    builder.add(start, load(builder, source, 4 * LANES * v, start.type, 4))
                    for v, start in enumerate(end.starts)
                ]
                end.write(totals, [row])
        return context.get_dummy_value()

    @intrinsic
    def finish(context, sums, count, places, columns, plan):
        return types.void(*[types.intp] * 4, plan), generate

    return finish


class _End:
    """Generator of the end of sums of some vectors of columns; see :func:`block_of` for the plan.

    ``starts`` are the first summands. A mask has the lanes of a vector that are columns, or is None
    if all are.
    """

    def __init__(
        self, builder: ir.IRBuilder, packed: Any, columns: Any, vectors: int, narrow: bool
    ) -> None:
        self.builder, self.vectors = builder, vectors
        (
            apart, self.y, self.residual, self.kind_y, self.kind_residual, zero, scale, low, high,
            inverse, zero_y, least, most, remaining,
        ) = cgutils.unpack_tuple(builder, packed)  # fmt: skip
        self.ints, self.floats = ir.VectorType(I32, LANES), ir.VectorType(FLOAT, LANES)
        self.masks = [
            lanes_below(builder, LANES, remaining, v * LANES) if narrow else None
            for v in range(vectors)
        ]
        self.starts = self._line(builder.inttoptr(columns, BYTE), self.ints)
        of_columns = builder.inttoptr(builder.add(columns, apart), BYTE)
        self.scales = self._line(of_columns, self.floats)
        self.shifts = self._line(builder.gep(of_columns, [apart]), self.floats)
        self.zero, self.zero_y = (
            all_lanes(builder, self.ints, builder.trunc(number, I32)) for number in (zero, zero_y)
        )
        self.scale, self.inverse, self.low, self.high, self.least, self.most = (
            all_lanes(builder, self.floats, number)
            for number in (scale, inverse, low, high, least, most)
        )
        if LANES == 16:  # for packs of two vectors
            shorts, least = ir.VectorType(ir.IntType(16), 2 * LANES), self._rounded(self.least)
            self.zero_16, self.least_16 = (
                called(builder, "llvm.x86.avx512.packssdw.512", shorts, v, v)
                for v in (self.zero_y, least)
            )

    def _line(self, base: Any, kind: Any) -> list[Any]:
        return [load(self.builder, base, 4 * LANES * v, kind, 4) for v in range(self.vectors)]

    def fetch(self, places: Any) -> None:
        """Generate prefetches of the lines of a row of results, and of the residual, to L2."""
        builder, row = self.builder, load(self.builder, places, 0, I64, 8)
        for base, kind in ((self.y, self.kind_y), (self.residual, self.kind_residual)):
            for known, size in ((BYTES, 1), (FLOATS, 4)):
                with builder.if_then(_is(builder, kind, known)):
                    line = builder.add(base, builder.mul(row, whole(size)))
                    for offset in (*range(0, size * COLUMNS, 64), size * COLUMNS - 1):
                        place = builder.add(line, whole(offset))
                        fetch_line(builder, builder.inttoptr(place, BYTE))

    def write(self, sums: list[Any], rows: list[Any]) -> None:
        """Generate the finish of vectors of sums, row by row; ``rows`` are numbers of results."""
        builder, vectors = self.builder, self.vectors
        values = [builder.sitofp(total, self.floats) for total in sums]
        values = [builder.fmul(v, self.scales[i % vectors]) for i, v in enumerate(values)]
        values = [builder.fadd(v, self.shifts[i % vectors]) for i, v in enumerate(values)]

        def pointers(base: Any, size: int) -> list[Any]:
            lines = [builder.add(base, builder.mul(row, whole(size))) for row in rows]
            return [builder.inttoptr(line, BYTE) for line in lines]

        def read(lines: list[Any], i: int, size: int, number: ir.Type) -> Any:
            row, v = divmod(i, vectors)
            kind = ir.VectorType(number, LANES)
            return load(builder, lines[row], v * LANES * size, kind, 1, self.masks[v])

        def plus_floats(values: list[Any]) -> list[Any]:
            lines = pointers(self.residual, 4)
            return [builder.fadd(v, read(lines, i, 4, FLOAT)) for i, v in enumerate(values)]

        def plus_bytes(values: list[Any]) -> list[Any]:
            lines, changed = pointers(self.residual, 1), []
            for i, v in enumerate(values):
                number = builder.zext(read(lines, i, 1, I8), self.ints)
                number = builder.sitofp(builder.sub(number, self.zero), self.floats)
                changed.append(builder.fadd(v, builder.fmul(number, self.scale)))
            return changed

        for kind, change in ((FLOATS, plus_floats), (BYTES, plus_bytes)):
            values = changed_if(builder, _is(builder, self.kind_residual, kind), values, change)

        with builder.if_else(_is(builder, self.kind_y, BYTES)) as (then, otherwise):
            with then:
                for i, line in enumerate(pointers(self.y, 1)):
                    self._write_bytes(values[i * vectors : (i + 1) * vectors], line)
            with otherwise:
                lines = pointers(self.y, 4)
                for i, v in enumerate(values):
                    row, vector = divmod(i, vectors)
                    v = _within(builder, v, self.low, self.high)
                    store(builder, v, lines[row], 4 * LANES * vector, 1, self.masks[vector])

    def _write_bytes(self, values: list[Any], line: Any) -> None:
        """Generate the store of a row of values as bytes."""
        builder = self.builder
        values = [builder.fmul(value, self.inverse) for value in values]
        if len(values) < 4 or LANES < 16:
            magic = ir.Constant(self.floats, [ROUNDING] * LANES)
            for v, value in enumerate(values):
                near = builder.fadd(_within(builder, value, self.least, self.most), magic)
                number = builder.add(builder.bitcast(near, self.ints), self.zero_y)
                number = builder.trunc(number, ir.VectorType(I8, LANES))
                store(builder, number, line, v * LANES, 1, self.masks[v])
            return
        # Two by two. The conversion makes the least integer of NaN, as of numbers that are too low;
        # rounding and the lower limit change places. A pack takes 128 bits of both in turn.
        shorts, small = ir.VectorType(ir.IntType(16), 32), ir.VectorType(I8, 64)
        pairs = []
        for i in (0, 2):
            whole_numbers = []
            for value in values[i : i + 2]:
                above = builder.fcmp_ordered(">", value, self.most)
                whole_numbers.append(self._rounded(builder.select(above, self.most, value)))
            pair = called(builder, "llvm.x86.avx512.packssdw.512", shorts, *whole_numbers)
            low = builder.icmp_signed("<", pair, self.least_16)
            pair = builder.select(low, self.least_16, pair)
            pairs.append(builder.add(pair, self.zero_16))
        packed = called(builder, "llvm.x86.avx512.packuswb.512", small, *pairs)
        order = ir.Constant(self.ints, [4 * (i % 4) + i // 4 for i in range(16)])
        words = builder.bitcast(packed, self.ints)
        numbers = builder.bitcast(builder.shuffle_vector(words, words, order), small)
        store(builder, numbers, line, 0, 1, self._mask_of_line())

    def _rounded(self, value: Any) -> Any:
        """Generate int32 numbers, the nearest to a vector's, ties to even."""
        everywhere = ir.Constant(ir.IntType(16), -1)
        nothing, mode = ir.Constant(self.ints, None), ir.Constant(I32, 4)
        return called(
            self.builder, "llvm.x86.avx512.mask.cvtps2dq.512", self.ints, value, nothing,
            everywhere, mode,
        )  # fmt: skip

    def _mask_of_line(self) -> Any:
        """Generate the mask of a row of four vectors; None if all are columns."""
        if self.masks[0] is None:
            return None
        masks = self.masks
        for size in (32, 64):
            numbers = ir.Constant(ir.VectorType(I32, size), list(range(size)))
            masks = [
                self.builder.shuffle_vector(*masks[i : i + 2], numbers)
                for i in range(0, len(masks), 2)
            ]
        return masks[0]


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
            for offset in range(0, LINE, 64):
                fetch_line(builder, builder.gep(place, [whole(AHEAD + offset)]))
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


def _is(builder: ir.IRBuilder, value: Any, kind: int) -> Any:
    return builder.icmp_signed("==", value, whole(kind))


def _within(builder: ir.IRBuilder, value: Any, least: Any, most: Any) -> Any:
    """Generate a vector within the limits of two others; NaN becomes the lower one."""
    value = builder.select(builder.fcmp_ordered(">", value, least), value, least)
    return builder.select(builder.fcmp_ordered("<", value, most), value, most)


multiply = block_of(VECTORS)
#: For one vector of a last panel's columns, which may be narrow.
multiply_narrow = block_of(1, narrow=True)
multiply_channels = block_of(VECTORS, depthwise=True)
multiply_channels_narrow = block_of(1, narrow=True, depthwise=True)
finish, finish_narrow = finish_of(), finish_of(narrow=True)
