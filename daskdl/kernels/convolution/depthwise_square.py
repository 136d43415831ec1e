"""Gradients to the weights of depthwise 3x3 convolutions: a row's nine sums stay in registers.

From one window to the next, three numbers of the image are loaded; a loop over taps, as for other
shapes, would load nine.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from daskdl.kernels.products.microkernel import LANES, address, fetch_all, keep
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.llvm import BYTE, I64, load, store, whole

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
        kind, nothing = ir.VectorType(number, LANES), whole(0)
        starts = builder.inttoptr(table, BYTE)
        rows = [builder.inttoptr(load(builder, starts, 8 * i, I64, 8), BYTE) for i in range(3)]
        end = builder.mul(channels, whole(size))
        before, outer = builder.block, builder.append_basic_block("channels")
        inner, finish = builder.append_basic_block("window"), builder.append_basic_block("finish")
        after = builder.append_basic_block("done")
        builder.branch(outer)

        builder.position_at_end(outer)
        offset = builder.phi(I64)
        above = [builder.gep(row, [offset]) for row in rows]
        below = builder.gep(builder.inttoptr(gradients, BYTE), [offset])
        to = builder.gep(builder.inttoptr(target, BYTE), [offset])
        places = [builder.gep(to, [builder.mul(step, whole(i))]) for i in range(9)]
        old = [load(builder, place, 0, kind, size) for place in places]
        left = [load(builder, row, 0, kind, size) for row in above]
        middle = [load(builder, builder.gep(row, [near]), 0, kind, size) for row in above]
        builder.branch(inner)

        builder.position_at_end(inner)
        rest, here, there = (builder.phi(I64) for _ in range(3))
        known = [[builder.phi(kind) for _ in range(2)] for _ in range(3)]
        sums = [builder.phi(kind) for _ in range(9)]
        factor = load(builder, builder.gep(below, [there]), 0, kind, size)
        following = builder.add(here, near)
        totals = []
        for i, row in enumerate(above):
            values = [*known[i], load(builder, builder.gep(row, [following]), 0, kind, size)]
            for j, value in enumerate(values):
                product = builder.fmul(value, factor, flags=("contract",))
                totals.append(builder.fadd(sums[3 * i + j], product, flags=("contract",)))
            for phi, first, new in zip(known[i], (left[i], middle[i]), values[1:], strict=True):
                phi.add_incoming(first, outer)
                phi.add_incoming(new, inner)
        fewer = builder.sub(rest, whole(1))
        for phi, first, new in [
            (rest, count, fewer),
            (here, near, following),
            (there, nothing, builder.add(there, far)),
            *zip(sums, old, totals, strict=True),
        ]:
            phi.add_incoming(first, outer)
            phi.add_incoming(new, inner)
        builder.cbranch(builder.icmp_signed(">", fewer, nothing), inner, finish)

        builder.position_at_end(finish)
        for total, place in zip(totals, places, strict=True):
            store(builder, total, place, 0, size)
        behind = builder.add(offset, whole(LANES * size))
        offset.add_incoming(nothing, before)
        offset.add_incoming(behind, finish)
        builder.cbranch(builder.icmp_signed("<", behind, end), outer, after)
        builder.position_at_end(after)
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
