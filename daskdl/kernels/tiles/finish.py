"""The end of a block of 32 x 32 sums: bias, residual and limits, then float32 or bfloat16."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from daskdl.compat.numba_compiler import cgutils
from daskdl.kernels.products.bfloat16_pair import round_two
from daskdl.kernels.runtime.llvm import (
    BYTE,
    FLOAT,
    I64,
    all_lanes,
    fetch_line,
    lanes_below,
    load,
    store,
    whole,
)
from daskdl.kernels.tiles.instructions import BLOCK, LINE, SIDE

_KIND = ir.VectorType(FLOAT, SIDE)


def _block(narrow: bool) -> Any:
    """Return a generator of the end of a block, whose last panel may be ``narrow``."""

    def generate(context, builder, signature, args):
        sums, places, count, shift, y, residual, bias, low, high, half = args[:10]
        firsts = range(0, BLOCK, SIDE)
        masks = [lanes_below(builder, SIDE, args[10], n) if narrow else None for n in firsts]
        both = lanes_below(builder, BLOCK, args[10]) if narrow else None
        zeros = cgutils.alloca_once_value(builder, ir.Constant(ir.ArrayType(FLOAT, BLOCK), None))
        alone = builder.icmp_signed("==", residual, whole(0))
        residual = builder.select(alone, builder.ptrtoint(zeros, I64), residual)
        size_of_residual = builder.select(alone, whole(0), whole(4))
        start = builder.inttoptr(builder.add(bias, builder.mul(shift, whole(4))), BYTE)
        shifts = [load(builder, start, 4 * n, _KIND, 4) for n in firsts]
        least, most = (all_lanes(builder, _KIND, limit) for limit in (low, high))

        def fetch(base, place, size):
            for line in range(0, size * BLOCK, LINE):
                fetch_line(builder, builder.gep(at(base, place, size), [whole(line)]))

        def rows(size, write):
            with cgutils.for_range(builder, count) as loop:
                entry = builder.add(places, builder.mul(loop.index, whole(8)))
                entry = builder.inttoptr(entry, BYTE)
                place = load(builder, entry, 0, I64, 8)
                # A store to a missing line would wait until the line is read.
                after = builder.add(load(builder, entry, 8 * BLOCK, I64, 8), shift)
                fetch(y, after, size)
                with builder.if_then(builder.not_(alone)):
                    fetch(residual, after, 4)
                with builder.if_then(builder.icmp_signed(">=", place, whole(0))):
                    place = builder.add(place, shift)
                    row = at(sums, loop.index, 4 * BLOCK)
                    other = at(residual, place, size_of_residual)
                    values = []
                    for n, mask, more in zip(firsts, masks, shifts, strict=True):
                        value = builder.fadd(load(builder, row, 4 * n, _KIND, 4), more)
                        added = load(builder, other, 4 * n, _KIND, 4, mask)
                        value = builder.fadd(value, added)
                        # NaN stays.
                        value = builder.select(
                            builder.fcmp_ordered("<", value, least), least, value
                        )
                        value = builder.select(builder.fcmp_ordered(">", value, most), most, value)
                        values.append(value)
                    write(place, values)

        def at(base, index, size):
            size = whole(size) if isinstance(size, int) else size
            return builder.inttoptr(builder.add(base, builder.mul(index, size)), BYTE)

        def floats(place, values):
            for n, mask, value in zip(firsts, masks, values, strict=True):
                store(builder, value, at(y, place, 4), 4 * n, 4, mask)

        def halves(place, values):
            store(builder, round_two(builder, *values), at(y, place, 2), 0, 2, both)

        with builder.if_else(half) as (then, otherwise):
            with then:
                rows(2, halves)
            with otherwise:
                rows(4, floats)
        return context.get_dummy_value()

    return generate


_NUMBERS = *[types.intp] * 7, types.float32, types.float32, types.boolean


@intrinsic
def finish_block(
    context, sums, places, count, shift, y, residual, bias, low, high, half
):  # fmt: skip
    """Write ``min(max(sum + bias + residual, low), high)`` of ``count`` rows of 32 sums.

    ``places`` is the address of the rows' places in y and in the residual, in numbers; -1 stands
    for none. ``shift`` is the first column. y, the residual (0 for none) and the bias are
    addresses. Results are bfloat16 if ``half``, else float32.
    """
    return types.void(*_NUMBERS), _block(False)


@intrinsic
def finish_part(
    context, sums, places, count, shift, y, residual, bias, low, high, half, columns
):  # fmt: skip
    """Do :func:`finish_block` for fewer columns than a block's."""
    return types.void(*_NUMBERS, types.intp), _block(True)
