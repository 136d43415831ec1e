"""Tall blocks: the products of as many rows as registers allow, by a panel of weights.

Of 32 registers 28 are sums, two have the weights and one a row's number. Meanwhile the data of the
next block are prefetched to L2.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from daskdl.compat.numba_compiler import cgutils
from daskdl.kernels.products.bfloat16_pair import Pairs, arithmetic
from daskdl.kernels.products.microkernel import COLUMNS, LANES, LINE
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.llvm import (
    BYTE,
    all_lanes,
    changed_if,
    fetch_line,
    lanes_below,
    load,
    repeated,
    store,
    whole,
)

#: Rows of a block: of 32 registers 28 are sums, of 16 there are 12.
TALL = 14 if LANES == 16 else 6
#: Rows of a block if fewer are left.
SHORT = TALL // 2
#: Bytes that are prefetched to L2 with each summand of a block.
FETCHED = 128


def _block(rows: int, halves: int, narrow: bool) -> Any:
    """Return a numba function that computes ``rows`` x ``halves`` vectors of results.

    Arguments are an array of the dtype, uint32 for pairs of bfloat16; the addresses of the first
    row of A, of a panel's part, of the first row of results, and of data to prefetch to L2; and a
    tuple. It has the number of summands; the number of rows, the last of which stands for missing
    ones; the bytes from row to row of A and of results; whether to add to the results, and whether
    this is the end; then the bias' address, the bytes from a result to its residual (0 for none),
    both limits, and the number of columns of a ``narrow`` panel.
    """

    def generate(context, builder, signature, args):
        like = signature.args[0]
        number, size = context.get_data_type(like.dtype), like.dtype.bitwidth // 8
        pairs = Pairs(arithmetic(), LANES) if like.dtype == types.uint32 else None
        a, b, y, ahead = args[1:5]
        plan = cgutils.unpack_tuple(builder, args[5])
        depth, count, a_step, y_step, add, last, bias, residual, low, high, columns = plan
        words, width = ir.VectorType(number, LANES), LANES * size
        vector = words if pairs is None else pairs.sums
        nothing = ir.Constant(vector, [0.0] * LANES)
        # The last vector of a narrow panel has lanes without columns.
        last_lanes = lanes_below(builder, LANES, columns, (halves - 1) * LANES) if narrow else None
        masks = [*[None] * (halves - 1), last_lanes]

        def read(place, half):
            return load(builder, place, half * width, vector, size, masks[half])

        def write(value, place, half):
            store(builder, value, place, half * width, size, masks[half])

        # Rows beyond the last repeat it: the same code serves any count, and writes equal results.
        final = builder.sub(count, whole(1))
        present = [builder.icmp_signed("<", whole(i), final) for i in range(rows)]
        numbers = [builder.select(there, whole(i), final) for i, there in enumerate(present)]

        def steps(start, step):
            return [builder.add(start, builder.mul(step, number)) for number in numbers]

        lines = [builder.inttoptr(place, BYTE) for place in steps(a, a_step)]
        panel = builder.inttoptr(b, BYTE)
        state = None if pairs is None else pairs.begin(builder)

        # All sums stay in registers over the whole depth.
        def summand(k, at_b, *totals):
            values = [load(builder, at_b, half * width, words, size) for half in range(halves)]
            sums = []
            for i, line in enumerate(lines):
                place = builder.gep(line, [builder.mul(k, whole(size))])
                factors = all_lanes(builder, words, load(builder, place, 0, number, size))
                for half, value in enumerate(values):
                    total = totals[halves * i + half]
                    if pairs is None:
                        product = builder.fmul(factors, value, flags=("contract",))
                        sums.append(builder.fadd(total, product, flags=("contract",)))
                    else:
                        sums.append(pairs.add_product(builder, total, factors, value))
            place = builder.add(ahead, builder.mul(k, whole(FETCHED)))
            for line in range(0, FETCHED, LINE):
                fetch_line(builder, builder.inttoptr(builder.add(place, whole(line)), BYTE))
            return [builder.gep(at_b, [whole(COLUMNS * size)]), *sums]

        _, *sums = repeated(builder, depth, [panel, *[nothing] * rows * halves], summand)
        if pairs is not None:
            pairs.end(builder, state)
        targets = [builder.inttoptr(place, BYTE) for place in steps(y, y_step)]

        def plus(places):
            def change(values):
                return [
                    builder.fadd(read(places[i // halves], i % halves), value)
                    for i, value in enumerate(values)
                ]

            return change

        def ended(values):
            shifts = [
                load(builder, builder.inttoptr(bias, BYTE), half * width, vector, size)
                for half in range(halves)
            ]
            values = [builder.fadd(v, shifts[i % halves]) for i, v in enumerate(values)]
            others = [builder.gep(place, [residual]) for place in targets]
            some = builder.icmp_signed("!=", residual, whole(0))
            values = changed_if(builder, some, values, plus(others))
            for sign, limit in (("<", low), (">", high)):
                edge = all_lanes(builder, vector, limit)
                # NaN stays.
                values = [
                    builder.select(builder.fcmp_ordered(sign, v, edge), edge, v) for v in values
                ]
            return values

        results = changed_if(builder, add, sums, plus(targets))
        results = changed_if(builder, last, results, ended)
        for i, value in enumerate(results):
            write(value, targets[i // halves], i % halves)
        return context.get_dummy_value()

    @intrinsic
    def block(context, like, a, b, y, ahead, plan):
        return types.void(like, *[types.intp] * 4, plan), generate

    return block


_tall, _short = (_block(n, 2, False) for n in (TALL, SHORT))
_tall_narrow, _short_narrow = (_block(n, 2, True) for n in (TALL, SHORT))
_tall_half, _short_half = (_block(n, 1, True) for n in (TALL, SHORT))


@jit
def multiply_block(x, a, b, y, ahead, plan, kind):
    """Compute up to TALL rows of a whole panel (kind 0), of a narrow one (1) or of half one (2)."""
    if plan[1] > SHORT and kind == 0:
        _tall(x, a, b, y, ahead, plan)
    elif plan[1] > SHORT and kind == 1:
        _tall_narrow(x, a, b, y, ahead, plan)
    elif plan[1] > SHORT:
        _tall_half(x, a, b, y, ahead, plan)
    elif kind == 0:
        _short(x, a, b, y, ahead, plan)
    elif kind == 1:
        _short_narrow(x, a, b, y, ahead, plan)
    else:
        _short_half(x, a, b, y, ahead, plan)
