"""Gradients to the weights of depthwise 3x3 convolutions: a row's nine sums stay in registers.

From one window to the next, three numbers of the image are loaded; a loop over taps, as for other
shapes, would load nine.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from daskdl.compat.numba_compiler import cgutils
from daskdl.kernels.products.microkernel import LANES, address, fetch_all, keep
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.llvm import BYTE, I64, load, repeated, store, whole

#: A multiple of ``LANES`` on any processor.
WIDEST = 16


@jit
def serves(offsets, plan, channels):
    """Return whether taps are 3x3 without dilation, stride is 1, and channels are whole vectors.

    Vectors are the widest of any processor, so that the choice is the same everywhere. ``plan`` has
    strides, columns of the kernel, and dilation of columns.
    """
    square = offsets.shape[0] == 9 and offsets[8, 0] - offsets[0, 0] == 2 and plan[2] == 3
    return square and plan[0] == plan[1] == plan[3] == 1 and channels % WIDEST == 0


@intrinsic
def _products(context, like, table, count, channels, near, far, gradients, target, step):
    """Add to 3x3 sums the products of a row's gradients and the pixels of their windows.

    Pixels of one window stay in registers for the next: nine products load only four numbers, three
    of the image and a gradient.

    Arguments are an array of the dtype; the address of a table of the addresses, int64, of three
    rows' first pixels; the number of gradients; channels, a multiple of ``LANES``; the bytes of a
    pixel of those rows, and of the gradients; the gradients' address; the sums' address, and bytes
    from tap to tap.
    """
    signature = types.void(like, *[types.intp] * 8)

    def generate(context, builder, signature, args):
        number = context.get_data_type(signature.args[0].dtype)
        size = 4 if signature.args[0].dtype == types.float32 else 8
        _, table, count, channels, near, far, gradients, target, step = args
        kind = ir.VectorType(number, LANES)
        starts = builder.inttoptr(table, BYTE)
        rows = [builder.inttoptr(load(builder, starts, 8 * i, I64, 8), BYTE) for i in range(3)]
        vectors = builder.sdiv(channels, whole(LANES))
        with cgutils.for_range(builder, vectors) as loop:
            offset = builder.mul(loop.index, whole(LANES * size))
            above = [builder.gep(row, [offset]) for row in rows]
            below = builder.gep(builder.inttoptr(gradients, BYTE), [offset])
            to = builder.gep(builder.inttoptr(target, BYTE), [offset])
            places = [builder.gep(to, [builder.mul(step, whole(i))]) for i in range(9)]
            old = [load(builder, place, 0, kind, size) for place in places]
            left = [load(builder, row, 0, kind, size) for row in above]
            middle = [load(builder, builder.gep(row, [near]), 0, kind, size) for row in above]

            def window(_, here, there, *values):
                factor = load(builder, builder.gep(below, [there]), 0, kind, size)
                following = builder.add(here, near)
                sums, totals = values[:9], []
                right = [
                    load(builder, builder.gep(row, [following]), 0, kind, size) for row in above
                ]
                for i, row in enumerate(zip(values[9:12], values[12:], right, strict=True)):
                    for j, value in enumerate(row):
                        product = builder.fmul(value, factor, flags=("contract",))
                        totals.append(builder.fadd(sums[3 * i + j], product, flags=("contract",)))
                return [following, builder.add(there, far), *totals, *values[12:], *right]

            first = [near, whole(0), *old, *left, *middle]
            _, _, *totals = repeated(builder, count, first, window)
            for total, place in zip(totals[:9], places, strict=True):
                store(builder, total, place, 0, size)
        return context.get_dummy_value()

    return signature, generate


@jit
def weight_sums(x, offsets, dy, dw, channel, channels):
    """Add the sums of ``channels`` channels from ``channel`` on to ``dw`` (9, C), row by row.

    A buffer holds three rows of the image at a time, with zeros around them.
    """
    (height, width), (rows, columns), size = x.shape[1:3], dy.shape[1:3], x.itemsize
    pixel, wide = x.shape[3] * size, channels * size
    down, across = offsets[0]
    low, high = max(0, -across), min(columns + 2, width - across)
    near = np.zeros((4, columns + 2, channels), x.dtype)  # the last one stays zero
    lines, numbers, flat = np.empty(3, np.int64), x.reshape(-1), near.reshape(-1)
    for n in range(len(dy)):
        for t in range(rows):
            for row in range(t + down if t == 0 else t + down + 2, t + down + 3):
                if 0 <= row < height:
                    first = ((n * height + row) * width + across) * x.shape[3] + channel
                    for u in range(low, high):
                        source = np.uintp(first + u * x.shape[3])
                        sink = np.uintp((row % 3 * (columns + 2) + u) * channels)
                        for c in range(np.uintp(channels)):
                            flat[sink + c] = numbers[source + c]
            for i in range(3):
                row = t + down + i
                lines[i] = address(near[row % 3 if 0 <= row < height else 3])
            here = address(dy) + (n * rows + t) * columns * pixel + channel * size
            if n * rows + t + 1 < len(dy) * rows:
                for u in range(columns, 2 * columns):
                    fetch_all(here + u * pixel, wide)
            _products(
                x, address(lines), columns, channels, wide, pixel, here,
                address(dw) + channel * size, pixel,
            )  # fmt: skip
    keep(near)
