"""Packing of weights into the order of a product's B, in panels of ``COLUMNS`` channels."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from daskdl.kernels.products.microkernel import COLUMNS, LANES, address, copy, fetch
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.llvm import BYTE, load, store, whole
from daskdl.kernels.runtime.memory import empty, scratch
from daskdl.kernels.runtime.team import over_range
from daskdl.kernels.runtime.threads import least_of

Array = NDArray[Any]


def packed_weights(weight: Array, taps: NDArray[np.int64], by_input: bool, name: str = "") -> Array:
    """Return weights (out, all taps, in) as panels (panels, taps, summed, COLUMNS).

    See :func:`pack`. They are in new memory or, with a name, in memory that the thread reuses for
    the next panels of that name.
    """
    filters, _, channels = weight.shape
    width, summed = (channels, filters) if by_input else (filters, channels)
    shape = -(-width // COLUMNS), len(taps), summed, COLUMNS
    panels = scratch(name, shape, weight.dtype) if name else empty(shape, weight.dtype)
    least = least_of(40 * panels[0].size)
    over_range(pack_all, len(panels), least, weight, taps, by_input, panels)
    return panels


@intrinsic
def transpose(context, like, source, source_step, target, target_step):
    """Transpose ``LANES`` rows of ``LANES`` numbers from one address to another.

    Blocks off the diagonal are swapped, blocks of half the side first (J. O. Eklundh, 1972).
    """
    signature = types.void(like, *[types.intp] * 4)

    def generate(context, builder, signature, args):
        size = like.dtype.bitwidth // 8
        vector = ir.VectorType(context.get_data_type(signature.args[0].dtype), LANES)
        _, source, source_step, target, target_step = args
        rows = []
        for i in range(LANES):
            place = builder.add(source, builder.mul(source_step, whole(i)))
            rows.append(load(builder, builder.inttoptr(place, BYTE), 0, vector, size))
        side = LANES // 2
        while side:
            for i in range(LANES):
                if i & side:
                    continue
                upper, lower = rows[i], rows[i + side]
                for to, shift in ((i, 0), (i + side, side)):
                    lanes = [
                        lane + shift if not lane & side else LANES + lane - side + shift
                        for lane in range(LANES)
                    ]
                    mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), lanes)
                    rows[to] = builder.shuffle_vector(upper, lower, mask)
            side //= 2
        for i, row in enumerate(rows):
            place = builder.add(target, builder.mul(target_step, whole(i)))
            store(builder, row, builder.inttoptr(place, BYTE), 0, size)
        return context.get_dummy_value()

    return signature, generate


@jit
def interleave(lower, upper, alone, target):
    """Write pairs of two rows of words, or the first row if ``alone``."""
    if alone:
        for k in range(lower.size):
            target[k] = lower[k]
    else:
        for k in range(lower.size):
            target[k] = np.uint32(lower[k]) | (np.uint32(upper[k]) << np.uint32(16))


@jit
def pack(weight, taps, by_input, first, start, stop, panels):
    """Put weights (out, all taps, in) in the order of a product's B, channels to a panel.

    ``taps`` are the taps in order. With ``by_input`` the columns are input channels and the sum is
    over (tap, out), for the gradient to the input; otherwise the columns are filters and the sum is
    over (tap, in). ``first`` is the channel of the first column, ``start`` to ``stop`` are the
    summed channels. In panels (panels, taps, at least the summed channels, COLUMNS), columns after
    the last channel become zeros.
    """
    filters, channels, size = weight.shape[0], weight.shape[2], weight.itemsize
    step, line = weight.shape[1] * channels * size, COLUMNS * size
    depth = panels.shape[2]
    for t in range(taps.size):
        tap = address(weight) + taps[t] * channels * size
        if by_input:
            # Short runs far apart: the processor does not prefetch the next tap's.
            ahead = taps[t + 1] - taps[t] if t + 1 < taps.size else taps[0] - taps[t]
            ahead = ahead * channels * size + (0 if t + 1 < taps.size else (stop - start) * step)
            for o in range(start, stop):
                for j in range(panels.shape[0]):
                    begin = first + j * COLUMNS
                    fetch(tap + o * step + begin * size + ahead)
                    if begin + COLUMNS <= channels:
                        to = address(panels) + ((j * taps.size + t) * depth + o - start) * line
                        copy(weight, tap + o * step + begin * size, to)
                    else:
                        target = panels[j, t, o - start]
                        for c in range(COLUMNS):
                            target[c] = weight[o, taps[t], begin + c] if begin + c < channels else 0
            continue
        for j in range(panels.shape[0]):
            begin = first + j * COLUMNS
            n = min(COLUMNS, filters - begin)
            turned = (stop - start) // LANES * LANES if n == COLUMNS else 0
            to = address(panels) + (j * taps.size + t) * depth * line
            for c in range(0, turned, LANES):
                for half in range(0, COLUMNS, LANES):
                    transpose(
                        weight, tap + (begin + half) * step + (start + c) * size, step,
                        to + c * line + half * size, line,
                    )  # fmt: skip
            part = panels[j, t, turned : stop - start]
            for o in range(n):
                for c in range(part.shape[0]):
                    part[c, o] = weight[begin + o, taps[t], start + turned + c]
            part[:, n:] = 0


@jit
def pack_all(weight, taps, by_input, panels, which, start, stop):
    """Pack the panels ``start`` to ``stop`` of whole weights, see :func:`pack`."""
    summed = weight.shape[0] if by_input else weight.shape[2]
    for j in range(start, stop, 4):  # four together, since their weights are adjacent
        pack(weight, taps, by_input, j * COLUMNS, 0, summed, panels[j : min(j + 4, stop)])
