"""The sums of AMX's tiles by ordinary vectors: the same bits on every processor.

A tile adds 32 products of bfloat16 numbers to a sum. It sums the lower halves' products
from zero, one after the other, by fused multiply-adds, and separately the upper halves'
products; then it adds lower + upper to the sum. Denormals count as zeros, before and after.
(Found by comparison with a processor, bit by bit, over exponents from -120 to 40.)
"""

from __future__ import annotations

import platform

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from daskdl.kernels.products.bfloat16_pair import Pairs
from daskdl.kernels.products.microkernel import LANES
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.llvm import (
    BYTE,
    I32,
    I64,
    all_lanes,
    changed_if,
    fma,
    load,
    repeated,
    store,
    whole,
)
from daskdl.kernels.tiles.instructions import BLOCK, LINE, SIDE, multiply_bfloat16

#: Rows that are computed together: a sum takes three registers while its halves are separate.
ROWS = 4 if LANES == SIDE else 2


@intrinsic
def rows_in_order(context, table, count, a, a_step, b, b_step, b_line, c, c_step, add):
    """Add the products of ``ROWS`` rows and 16 columns to sums; see ``multiply_bfloat16``."""

    def generate(context, builder, signature, args):
        table, count, a, a_step, b, b_step, b_line, c, c_step, add = args
        x86 = platform.machine().lower() in ("x86_64", "amd64")
        pairs = Pairs("control" if x86 else "compared", LANES)
        vectors, width = SIDE // LANES, 4 * LANES
        kind = pairs.sums
        zeros = ir.Constant(kind, [0.0] * LANES)

        def rows_from(base, step):
            return [
                builder.inttoptr(builder.add(base, builder.mul(step, whole(i))), BYTE)
                for i in range(ROWS)
            ]

        places = rows_from(c, c_step)
        state = pairs.begin(builder)

        def old(values):
            return [
                load(builder, place, v * width, kind, 4) for place in places for v in range(vectors)
            ]

        def tile(_, entry, at_b, *sums):
            rows = rows_from(builder.add(a, load(builder, entry, 0, I64, 8)), a_step)
            panel = builder.inttoptr(at_b, BYTE)

            def pair(k, *halves):
                line = builder.gep(panel, [builder.mul(k, b_line)])
                columns = [load(builder, line, v * width, pairs.words, 4) for v in range(vectors)]
                number = builder.mul(k, whole(4))
                words = [
                    all_lanes(
                        builder, pairs.words, load(builder, builder.gep(row, [number]), 0, I32, 4)
                    )
                    for row in rows
                ]
                results = []
                for part, half in zip(
                    (halves[: len(sums)], halves[len(sums) :]), (pairs.lower, pairs.upper),
                    strict=True,
                ):  # fmt: skip
                    factors = [pairs.flushed(builder, half(builder, word)) for word in words]
                    others = [pairs.flushed(builder, half(builder, column)) for column in columns]
                    products = [
                        fma(builder, factors[i // vectors], others[i % vectors], total)
                        for i, total in enumerate(part)
                    ]
                    results += [pairs.flushed(builder, product) for product in products]
                return results

            halves = repeated(builder, whole(SIDE), [zeros] * 2 * len(sums), pair)
            totals = []
            for total, lower, upper in zip(
                sums, halves[: len(sums)], halves[len(sums) :], strict=True
            ):
                both = pairs.flushed(builder, builder.fadd(lower, upper))
                total = builder.fadd(pairs.flushed(builder, total), both)
                totals.append(pairs.flushed(builder, total))
            return [builder.gep(entry, [whole(8)]), builder.add(at_b, b_step), *totals]

        first = changed_if(builder, add, [zeros] * ROWS * vectors, old)
        start = builder.inttoptr(table, BYTE)
        _, _, *totals = repeated(builder, count, [start, b, *first], tile)
        pairs.end(builder, state)
        for i, value in enumerate(totals):
            store(builder, value, places[i // vectors], i % vectors * width, 4)
        return context.get_dummy_value()

    return types.void(*[types.intp] * 9, types.boolean), generate


@jit
def multiply_in_order(
    table, count, upper, lower, a_step, left, right, b_step, b_line, c, c_step, add
):  # fmt: skip
    """Do :func:`daskdl.kernels.tiles.instructions.multiply_bfloat16` on any processor."""
    for row in range(0, BLOCK, ROWS):
        a = upper + row * a_step if row < SIDE else lower + (row - SIDE) * a_step
        to = c + row * c_step
        rows_in_order(table, count, a, a_step, left, b_step, b_line, to, c_step, add)
        rows_in_order(table, count, a, a_step, right, b_step, b_line, to + LINE, c_step, add)


@jit
def multiply_tiles(
    amx, table, count, upper, lower, a_step, left, right, b_step, b_line, c, c_step, add
):  # fmt: skip
    """Do :func:`daskdl.kernels.tiles.instructions.multiply_bfloat16`, by AMX or without."""
    if amx:
        multiply_bfloat16(
            table, count, upper, lower, a_step, left, right, b_step, b_line, c, c_step, add
        )
    else:
        multiply_in_order(
            table, count, upper, lower, a_step, left, right, b_step, b_line, c, c_step, add
        )
