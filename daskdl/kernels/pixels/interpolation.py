"""Pixels inside numba functions: memory at an address, and sums of weighted pixels in vectors.

LLVM does not find that the three or four channels of a pixel fit into one register; the functions
here load four numbers at once wherever a pixel begins. Lanes beyond the pixel's channels are
computed in vain; the next pixel overwrites their results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from daskdl.compat.numba_compiler import cgutils
from daskdl.kernels.runtime.llvm import FLOAT, I32, all_lanes, whole

#: Numbers of a vector; rows of pixels need as many spare numbers at their end.
VECTOR = 4

#: Pixels of three levels that :func:`mirror_levels` and :func:`mix_levels` process together.
PIXELS = 16

_VECTOR, _WIDE = ir.VectorType(FLOAT, VECTOR), ir.VectorType(FLOAT, 2 * VECTOR)
_FOUR = ir.VectorType(I32, VECTOR)
_LEVELS, _BLOCK = (ir.VectorType(ir.IntType(8), n * PIXELS) for n in (1, 3))
_PRODUCT_AND_SUM = ("contract",)


def addresses(images: Sequence[NDArray[Any]] | NDArray[Any]) -> NDArray[np.int64]:
    """Return the addresses of images, int64 (N,), of a sequence or one array (N, H, W, C)."""
    if isinstance(images, np.ndarray):
        return images.ctypes.data + images.strides[0] * np.arange(len(images))
    return np.array([image.ctypes.data for image in images], np.int64)


@intrinsic
def pointer(context, address, like):
    """Return an address, int64, as a pointer to numbers of the type of ``like``."""

    def generate(context, builder, signature, args):
        return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

    return types.CPointer(like)(types.int64, like), generate


@intrinsic
def weigh(context, source, place, step, weights, first, count, result, at):
    """Write the sum of ``count`` weighted vectors of four numbers.

    ``result[at : at + 4] = sum of weights[first + k] * source[place + k step : ... + 4]`` for k
    from 0; all are float32 arrays, indexed as flat C-contiguous ones.
    """
    number = types.intp

    def generate(context, builder, signature, args):
        source, weights, result = (
            context.make_array(signature.args[i])(context, builder, args[i]).data for i in (0, 3, 6)
        )
        _, place, step, _, first, count, _, at = args
        total = cgutils.alloca_once_value(builder, ir.Constant(_VECTOR, [0.0] * VECTOR))
        with cgutils.for_range(builder, count) as loop:
            here = builder.gep(source, [builder.add(place, builder.mul(loop.index, step))])
            pixel = builder.load(builder.bitcast(here, _VECTOR.as_pointer()), align=4)
            weight = builder.load(builder.gep(weights, [builder.add(first, loop.index)]))
            product = builder.fmul(
                pixel, all_lanes(builder, _VECTOR, weight), flags=_PRODUCT_AND_SUM
            )
            added = builder.fadd(builder.load(total), product, flags=_PRODUCT_AND_SUM)
            builder.store(added, total)
        target = builder.bitcast(builder.gep(result, [at]), _VECTOR.as_pointer())
        builder.store(builder.load(total), target, align=4)
        return context.get_dummy_value()

    arguments = (source, number, number, weights, number, number, result, number)
    return types.void(*arguments), generate


@intrinsic
def weigh_pairs(context, source, place, weights, first, pairs, result, at):
    """Write the sum of ``pairs`` weighted vectors of two pixels of three channels.

    Each pair reads eight numbers of ``source``, from ``place`` on in steps of six. ``weights`` from
    ``first`` on are eight for each pair: three times the first pixel's, three times the second's,
    0, 0.
    """
    number = types.intp

    def generate(context, builder, signature, args):
        source, weights, result = (
            context.make_array(signature.args[i])(context, builder, args[i]).data for i in (0, 2, 5)
        )
        _, place, _, first, pairs, _, at = args
        total = cgutils.alloca_once_value(builder, ir.Constant(_WIDE, [0.0] * 2 * VECTOR))
        with cgutils.for_range(builder, pairs) as loop:
            here = builder.add(place, builder.mul(loop.index, whole(6)))
            there = builder.add(first, builder.mul(loop.index, whole(8)))
            factors = [
                builder.load(builder.bitcast(builder.gep(*x), _WIDE.as_pointer()), align=4)
                for x in ((source, [here]), (weights, [there]))
            ]
            product = builder.fmul(*factors, flags=_PRODUCT_AND_SUM)
            added = builder.fadd(builder.load(total), product, flags=_PRODUCT_AND_SUM)
            builder.store(added, total)
        both, nothing = builder.load(total), ir.Constant(_WIDE, ir.Undefined)
        halves = [
            builder.shuffle_vector(both, nothing, ir.Constant(_FOUR, list(range(i, i + VECTOR))))
            for i in (0, 3)
        ]
        target = builder.bitcast(builder.gep(result, [at]), _VECTOR.as_pointer())
        builder.store(builder.fadd(*halves), target, align=4)
        return context.get_dummy_value()

    arguments = (source, number, weights, number, number, result, number)
    return types.void(*arguments), generate


@intrinsic
def copy(context, source, begin, result, at, count):
    """Copy ``count`` numbers to a place that does not overlap."""
    number = types.uint64

    def generate(context, builder, signature, args):
        here, there = (
            _at(context, builder, signature, args, 0),
            _at(context, builder, signature, args, 2),
        )
        nbytes = context.get_abi_sizeof(context.get_data_type(source.dtype))
        cgutils.raw_memcpy(builder, there, here, args[4], nbytes)
        return context.get_dummy_value()

    return types.void(source, number, result, number, number), generate


@intrinsic
def mirror_levels(context, source, begin, result, at):
    """Write :data:`PIXELS` pixels of three levels, uint8, in reverse order."""
    number = types.uint64

    def generate(context, builder, signature, args):
        pixels = _load(context, builder, signature, args, 0, _BLOCK)
        order = [3 * (PIXELS - 1 - p) + c for p in range(PIXELS) for c in range(3)]
        _store(context, builder, signature, args, 2, _shuffled(builder, pixels, pixels, order))
        return context.get_dummy_value()

    return types.void(source, number, result, number), generate


@intrinsic
def mix_levels(context, source, begin, result, at, mixture, most):
    """Write :data:`PIXELS` pixels of three levels, uint8, mixed by 3 x 4 numbers in a tuple.

    Each level is ``m0 x + m1 y + m2 z + m3``, limited to 0 and ``most``, then truncated.
    """
    number = types.uint64

    def generate(context, builder, signature, args):
        floats, longs = ir.VectorType(FLOAT, PIXELS), ir.VectorType(I32, PIXELS)
        pixels = _load(context, builder, signature, args, 0, _BLOCK)
        channels = [
            builder.uitofp(_shuffled(builder, pixels, pixels, range(c, 3 * PIXELS, 3)), floats)
            for c in range(3)
        ]
        numbers = [
            all_lanes(builder, floats, m) for m in cgutils.unpack_tuple(builder, args[4], 12)
        ]
        least, largest = ir.Constant(floats, [0.0] * PIXELS), all_lanes(builder, floats, args[5])
        mixed = []
        for row in range(0, 12, 4):
            total = builder.fmul(numbers[row], channels[0])
            for k in (1, 2):
                product = builder.fmul(numbers[row + k], channels[k], flags=_PRODUCT_AND_SUM)
                total = builder.fadd(total, product, flags=_PRODUCT_AND_SUM)
            total = builder.fadd(total, numbers[row + 3])
            total = builder.select(builder.fcmp_ordered(">", total, least), total, least)
            total = builder.select(builder.fcmp_ordered("<", total, largest), total, largest)
            mixed.append(builder.trunc(builder.fptosi(total, longs), _LEVELS))
        two = _shuffled(builder, mixed[0], mixed[1], range(2 * PIXELS))
        one = _shuffled(builder, mixed[2], mixed[2], range(2 * PIXELS))
        order = [c * PIXELS + p for p in range(PIXELS) for c in range(3)]
        _store(context, builder, signature, args, 2, _shuffled(builder, two, one, order))
        return context.get_dummy_value()

    return types.void(source, number, result, number, mixture, types.float32), generate


@intrinsic
def blend_levels(context, source, upper, lower, weights, result, at):
    """Write a pixel of three levels, uint8, between four pixels.

    It is the weighted sum of the pixels at ``upper``, after it, at ``lower`` and after it, plus the
    fifth weight. A fourth number is read after each pixel, and written after the result.
    """
    number = types.uint64

    def generate(context, builder, signature, args):
        levels = ir.VectorType(ir.IntType(8), VECTOR)
        *factors, total = (
            all_lanes(builder, _VECTOR, w) for w in cgutils.unpack_tuple(builder, args[3], 5)
        )
        first = context.make_array(signature.args[0])(context, builder, args[0]).data
        for k, factor in enumerate(factors):
            place = builder.add(args[1 + k // 2], whole(3 * (k % 2)))
            here = builder.bitcast(builder.gep(first, [place]), levels.as_pointer())
            wide = builder.zext(builder.load(here, align=1), _FOUR)
            product = builder.fmul(factor, builder.sitofp(wide, _VECTOR), flags=_PRODUCT_AND_SUM)
            total = builder.fadd(total, product, flags=_PRODUCT_AND_SUM)
        rounded = builder.trunc(builder.fptosi(total, _FOUR), levels)
        _store(context, builder, signature, args, 4, rounded)
        return context.get_dummy_value()

    return types.void(source, number, number, weights, result, number), generate


def _at(context, builder, signature, args, which):
    """Return the pointer to a place in an array; the place is the next argument."""
    array = context.make_array(signature.args[which])(context, builder, args[which])
    return builder.gep(array.data, [args[which + 1]])


def _load(context, builder, signature, args, which, kind):
    place = _at(context, builder, signature, args, which)
    return builder.load(builder.bitcast(place, kind.as_pointer()), align=1)


def _store(context, builder, signature, args, which, value):
    place = _at(context, builder, signature, args, which)
    builder.store(value, builder.bitcast(place, value.type.as_pointer()), align=1)


def _shuffled(builder, first, second, order):
    places = list(order)
    return builder.shuffle_vector(
        first, second, ir.Constant(ir.VectorType(I32, len(places)), places)
    )
