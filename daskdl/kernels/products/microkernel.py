"""The innermost product of all convolutions: a few rows by two registers' width, in LLVM's vectors.

A BLAS copies both matrices into its own order at each call; for the many small products of a
convolution, this costs as much as multiplying. Here the weights are packed once (:func:`pack`), and
the other matrix is read in place, row by row through a table of addresses: a row may be a pixel, a
tile, or zeros for a pixel outside the image.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from daskdl.compat.numba_compiler import features
from daskdl.kernels.products.bfloat16_pair import Pairs, arithmetic
from daskdl.kernels.products.finish import added_if, kinds, write_finished
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.llvm import (
    BYTE,
    I64,
    all_lanes,
    fetch_line,
    load,
    repeated,
    store,
    whole,
)


def _lanes() -> int:
    """Return the number of float32 lanes in a vector register."""
    return 16 if "avx512f" in features() else 8


#: Numbers of a vector. float64 takes two registers each: correct, but not fast.
LANES = _lanes()
#: Rows of one product. 6 x 2 sums, two vectors of B and one number of A fill 16 registers.
ROWS = 6
#: Rows of the small product, so that 4 and 16 rows leave none idle.
FEW_ROWS = 4
#: Columns of one product, and of a panel of packed weights.
COLUMNS = 2 * LANES
#: Columns of a panel with the widest vectors. Choices that affect the order of sums use this, so
#: that they are the same on all processors.
WIDEST_COLUMNS = 32
#: Table entries of a segment: an address for each row of A, a place in B, and a depth.
SEGMENT = ROWS + 2
#: Summands after which the sums go to memory, so that a panel's part (16 kB) stays in L1.
DEPTH = 256

#: Bytes of a cache line.
LINE = 64


def product_of(
    rows: int,
    finishes: bool = False,
    halves: int = 2,
    narrow: bool = False,
    way: str = "",
) -> Any:
    """Return a numba function that computes one block of ``rows`` x ``COLUMNS`` or of a half panel.

    One that ``finishes`` takes more arguments: a table of addresses, and an offset from them, of
    earlier sums for ``add``; a finish (:mod:`daskdl.kernels.products.finish`); and the number of
    columns of a ``narrow`` panel. Pairs of bfloat16 are multiplied in one ``way`` of
    :data:`~daskdl.kernels.products.bfloat16_pair.ARITHMETICS`, by default the fastest.

    Arguments are addresses and bytes unless stated otherwise. ``like`` is an array of the dtype of
    A and B: float32 or float64, also of the results; or uint32, pairs of bfloat16 with float32
    results. ``table`` has ``SEGMENT`` int64 for each of ``segments`` segments, whose products are
    summed: ``ROWS`` addresses of rows' first numbers in A, the bytes from ``b`` to the first row of
    B, and the depth, at least 1. ``a_step`` and ``b_step`` lead from one summand to the next.
    ``target`` is a table of ``rows`` addresses; the result's rows go ``offset`` bytes after them.
    ``add`` says whether to add to them. Superfluous rows repeat the last one, in A and in the
    result.
    """

    def typed(like):
        more = (types.intp, types.intp, *kinds(like), types.intp) if finishes else ()
        signature = types.void(like, *[types.intp] * 7, types.boolean, *more)

        def generate(context, builder, signature, args):
            _, table, segments, a_step, b, b_step, target, offset, add, *finish = args
            number, size = context.get_data_type(like.dtype), like.dtype.bitwidth // 8
            pairs = Pairs(way or arithmetic(), LANES) if like.dtype == types.uint32 else None
            words = ir.VectorType(number, LANES)
            vector = words if pairs is None else pairs.sums
            nothing = ir.Constant(vector, [0.0] * LANES)
            width, free = LANES * size, ("contract",)
            panel = builder.inttoptr(b, BYTE)
            state = None if pairs is None else pairs.begin(builder)

            def segment(k, entry, *sums):
                lines = [
                    builder.inttoptr(load(builder, entry, 8 * i, I64, 8), BYTE) for i in range(rows)
                ]
                from_b = builder.gep(panel, [load(builder, entry, 8 * ROWS, I64, 8)])
                depth = load(builder, entry, 8 * ROWS + 8, I64, 8)

                def summand(k, at_a, at_b, *sums):
                    columns = [load(builder, at_b, h * width, words, size) for h in range(halves)]
                    totals = []
                    for i, row in enumerate(lines):
                        factor = load(builder, builder.gep(row, [at_a]), 0, number, size)
                        factors = all_lanes(builder, words, factor)
                        for half, column in enumerate(columns):
                            total = sums[halves * i + half]
                            if pairs is None:
                                product = builder.fmul(factors, column, flags=free)
                                totals.append(builder.fadd(total, product, flags=free))
                            else:
                                totals.append(pairs.add_product(builder, total, factors, column))
                    return [builder.add(at_a, a_step), builder.gep(at_b, [b_step]), *totals]

                _, _, *totals = repeated(builder, depth, [whole(0), from_b, *sums], summand)
                return [builder.gep(entry, [whole(8 * SEGMENT)]), *totals]

            first = builder.inttoptr(table, BYTE), *[nothing] * halves * rows
            _, *sums = repeated(builder, segments, [*first], segment)
            if pairs is not None:
                pairs.end(builder, state)

            def places_at(table: Any, offset: Any) -> list[tuple[Any, int]]:
                addresses, places = builder.inttoptr(table, BYTE), []
                for i in range(rows):
                    row = builder.inttoptr(load(builder, addresses, 8 * i, I64, 8), BYTE)
                    row = builder.gep(row, [offset])
                    places += [(row, half * width) for half in range(halves)]
                return places

            places = places_at(target, offset)
            if finishes:
                source, source_offset, *finish, filled = finish
                before_these = places_at(source, source_offset)
                targets, old = (
                    [builder.gep(row, [whole(behind)]) for row, behind in some]
                    for some in (places, before_these)
                )
                totals = added_if(builder, add, sums, old)
                written = [(to, whole(place[1])) for to, place in zip(targets, places, strict=True)]
                write_finished(builder, totals, written, finish, filled if narrow else None, width)
                return context.get_dummy_value()
            with builder.if_else(add) as (then, otherwise):
                with then:  # all are read before one is written: a row may occur twice
                    totals = [
                        builder.fadd(load(builder, *place, vector, size), total)
                        for place, total in zip(places, sums, strict=True)
                    ]
                    for place, total in zip(places, totals, strict=True):
                        store(builder, total, *place, size)
                with otherwise:
                    for place, total in zip(places, sums, strict=True):
                        store(builder, total, *place, size)
            return context.get_dummy_value()

        return signature, generate

    if finishes:

        @intrinsic
        def product_and_end(
            context, like, table, segments, a_step, b, b_step, target, offset, add, source,
            source_offset, bias, residual, low, high, columns,
        ):  # fmt: skip
            return typed(like)

        return product_and_end

    @intrinsic
    def product(context, like, table, segments, a_step, b, b_step, target, offset, add):
        return typed(like)

    return product


multiply, multiply_and_end = product_of(ROWS), product_of(ROWS, True)
#: For a last block of at most ``FEW_ROWS`` rows.
multiply_few = product_of(FEW_ROWS)
#: For a single row, as in each step of a sequence of one sample.
multiply_one = product_of(1)
#: For a last panel of at most ``LANES`` columns.
multiply_half = product_of(ROWS, halves=1)
#: With a finish, for a last panel of fewer than ``COLUMNS`` columns, and of at most ``LANES``.
multiply_narrow_and_end = product_of(ROWS, True, narrow=True)
multiply_half_and_end = product_of(ROWS, True, 1, narrow=True)


def _copy(numbers: int) -> Any:
    """Return a numba function that copies ``numbers`` numbers from one address to another.

    Its arguments are an array of their dtype, the source and the target.
    """

    @intrinsic
    def copy(context, like, source, target):
        signature = types.void(like, types.intp, types.intp)

        def generate(context, builder, signature, args):
            size = like.dtype.bitwidth // 8
            vector = ir.VectorType(context.get_data_type(signature.args[0].dtype), LANES)
            source, target = (builder.inttoptr(address, BYTE) for address in args[1:])
            places = range(0, numbers * size, LANES * size)
            values = [load(builder, source, place, vector, size) for place in places]
            for place, value in zip(places, values, strict=True):
                store(builder, value, target, place, size)
            return context.get_dummy_value()

        return signature, generate

    return copy


copy = _copy(COLUMNS)
copy_vector = _copy(LANES)


@intrinsic
def clear_vector(context, like, target):
    """Write ``LANES`` zeros of an array's dtype to an address."""
    signature = types.void(like, types.intp)

    def generate(context, builder, signature, args):
        size = 4 if signature.args[0].dtype == types.float32 else 8
        vector = ir.VectorType(context.get_data_type(signature.args[0].dtype), LANES)
        zeros = ir.Constant(vector, None)
        store(builder, zeros, builder.inttoptr(args[1], BYTE), 0, size)
        return context.get_dummy_value()

    return signature, generate


@jit
def address(array):
    """Return an array's address as a signed number: sums with unsigned ones would become floats.

    An address does not keep memory alive: after the last use of its name, an array of a kernel is
    freed, and another thread may get its memory. See :func:`keep`.
    """
    return np.intp(array.ctypes.data)


@jit
def aligned(like, count):
    """Return ``count`` numbers of the dtype of ``like``, of any content, from a cache line on."""
    room = np.empty(count + LINE // like.itemsize, like.dtype)
    start = -address(room) % LINE // like.itemsize
    return room[start : start + count]


@jit
def keep(array):
    """Keep an array alive up to here, after a use of its address."""


@intrinsic
def fetch(context, place):
    """Prefetch the line at an address to L2; the address may be invalid."""
    signature = types.void(types.intp)

    def generate(context, builder, signature, args):
        fetch_line(builder, builder.inttoptr(args[0], BYTE))
        return context.get_dummy_value()

    return signature, generate


@jit
def fetch_all(place, n_bytes):
    """Prefetch bytes from an address on to L2."""
    for line in range(place, place + n_bytes, LINE):
        fetch(line)


@intrinsic
def number(context, like, place):
    """Return the number of an array's dtype at an address."""
    kind = like.dtype

    def generate(context, builder, signature, args):
        base = builder.inttoptr(args[1], BYTE)
        return load(builder, base, 0, context.get_data_type(kind), kind.bitwidth // 8)

    return kind(like, types.intp), generate


@intrinsic
def put_number(context, like, place, value):
    """Write a number of an array's dtype to an address."""
    kind = like.dtype

    def generate(context, builder, signature, args):
        store(builder, args[2], builder.inttoptr(args[1], BYTE), 0, kind.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(like, types.intp, kind), generate
