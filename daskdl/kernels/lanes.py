"""Pixels inside numba functions: memory at an address, and sums of weighted pixels in vectors.

LLVM does not see by itself that the three or four channels of a pixel fit into one register; a
function here loads four numbers at once wherever a pixel begins. What a vector holds beyond the
pixel's channels is computed for nothing and overwritten by the next pixel's.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

#: Numbers of a vector, and so those by which rows of pixels have to be longer than what they hold.
LANES = 4

_F32, _I32 = ir.FloatType(), ir.IntType(32)
_I64 = ir.IntType(64)
_VECTOR, _WIDE = ir.VectorType(_F32, LANES), ir.VectorType(_F32, 2 * LANES)
_FOUR = ir.VectorType(_I32, LANES)
_PRODUCT_AND_SUM = ("contract",)


@intrinsic
def pointer(context, address, like):  # type: ignore[no-untyped-def]
    """Return an address, int64, as a pointer to numbers of the type of ``like``."""

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

    return types.CPointer(like)(types.int64, like), generate


@intrinsic
def weigh(context, source, place, step, weights, first, count, result, at):  # type: ignore[no-untyped-def]
    """Write the sum of ``count`` weighted vectors of four numbers.

    ``result[at : at + 4] = sum of weights[first + k] * source[place + k step : ... + 4]`` for k
    from 0; float32 arrays whose elements are counted as if C-contiguous ones had one axis.
    """
    whole = types.intp

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        source, weights, result = (
            context.make_array(signature.args[i])(context, builder, args[i]).data for i in (0, 3, 6)
        )
        _, place, step, _, first, count, _, at = args
        total = cgutils.alloca_once_value(builder, ir.Constant(_VECTOR, [0.0] * LANES))
        with cgutils.for_range(builder, count) as loop:
            here = builder.gep(source, [builder.add(place, builder.mul(loop.index, step))])
            pixel = builder.load(builder.bitcast(here, _VECTOR.as_pointer()), align=4)
            weight = builder.load(builder.gep(weights, [builder.add(first, loop.index)]))
            product = builder.fmul(pixel, _four_times(builder, weight), flags=_PRODUCT_AND_SUM)
            added = builder.fadd(builder.load(total), product, flags=_PRODUCT_AND_SUM)
            builder.store(added, total)
        target = builder.bitcast(builder.gep(result, [at]), _VECTOR.as_pointer())
        builder.store(builder.load(total), target, align=4)
        return context.get_dummy_value()

    arguments = (source, whole, whole, weights, whole, whole, result, whole)
    return types.void(*arguments), generate


@intrinsic
def weigh_pairs(context, source, place, weights, first, pairs, result, at):  # type: ignore[no-untyped-def]
    """Write the sum of ``pairs`` weighted vectors of two pixels of three channels.

    ``source`` is read from ``place`` on, eight numbers and then six on; ``weights`` from ``first``
    on are eight numbers for each: three times the first pixel's, three times the second's, 0, 0.
    """
    whole = types.intp

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        source, weights, result = (
            context.make_array(signature.args[i])(context, builder, args[i]).data for i in (0, 2, 5)
        )
        _, place, _, first, pairs, _, at = args
        total = cgutils.alloca_once_value(builder, ir.Constant(_WIDE, [0.0] * 2 * LANES))
        with cgutils.for_range(builder, pairs) as loop:
            here = builder.add(place, builder.mul(loop.index, ir.Constant(_I64, 6)))
            there = builder.add(first, builder.mul(loop.index, ir.Constant(_I64, 8)))
            factors = [
                builder.load(builder.bitcast(builder.gep(*x), _WIDE.as_pointer()), align=4)
                for x in ((source, [here]), (weights, [there]))
            ]
            product = builder.fmul(*factors, flags=_PRODUCT_AND_SUM)
            added = builder.fadd(builder.load(total), product, flags=_PRODUCT_AND_SUM)
            builder.store(added, total)
        both, nothing = builder.load(total), ir.Constant(_WIDE, ir.Undefined)
        halves = [
            builder.shuffle_vector(both, nothing, ir.Constant(_FOUR, list(range(i, i + LANES))))
            for i in (0, 3)
        ]
        target = builder.bitcast(builder.gep(result, [at]), _VECTOR.as_pointer())
        builder.store(builder.fadd(*halves), target, align=4)
        return context.get_dummy_value()

    arguments = (source, whole, weights, whole, whole, result, whole)
    return types.void(*arguments), generate


def _four_times(builder, number):  # type: ignore[no-untyped-def]
    nothing = ir.Constant(_VECTOR, ir.Undefined)
    one = builder.insert_element(nothing, number, ir.Constant(_I32, 0))
    zeros = ir.Constant(_FOUR, [0] * LANES)
    return builder.shuffle_vector(one, nothing, zeros)
