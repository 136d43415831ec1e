"""Rows times weights that stay the same, by tall blocks: pointwise convolutions in inference.

The rows of a 1x1 convolution without strides lie one behind the other, so that no table of
addresses is wanted, and blocks are as tall as there are registers for: what begins and ends a block
takes as long as some twenty summands, which for 16 to 64 channels is much. Sums are made in the
order of :mod:`daskdl.kernels.convolution.direct`, so that they have the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from daskdl.compat.numba_core import cgutils
from daskdl.kernels.products.finish import Finish, all_lanes
from daskdl.kernels.products.microkernel import (
    BYTE,
    COLUMNS,
    DEPTH,
    LANES,
    address,
    load,
    whole,
)
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.team import work_over_range
from daskdl.kernels.runtime.threads import least_of, threads

Array = NDArray[np.floating]

#: Rows of a block: of 32 registers 28 are sums, of 16 there are 12.
TALL = 14 if LANES == 16 else 6
#: Rows of a block where less are left.
SHORT = TALL // 2
#: Rows up to which threads may share the weights, not the rows.
FEW = 512
#: Bytes of the rows that are multiplied with one panel after the other: they stay in L2.
KEPT = 192 << 10
#: Bytes after which places in L1 repeat.
PAGE = 4096
_I32 = ir.IntType(32)


def work_of(x: Array, panels: Array, y: Array, ends: Finish) -> Callable[[], object]:
    """Return what writes ``x @ weights`` to y, and finishes it, whenever it is called.

    Parameters
    ----------
    x : array (rows, at least K), C-contiguous
    panels : array (panels, K, COLUMNS)
        The weights (K, M), see :mod:`daskdl.kernels.products.packing`.
    y : array (rows, M), C-contiguous
    ends : Finish
    """
    rows, depth = x.shape
    blocks, work = -(-rows // TALL), 2.0 * depth * COLUMNS
    if rows <= FEW and _idle(len(panels)) <= _idle(blocks):  # weights are then read once
        least = least_of(work * rows)
        return work_over_range(_by_panels, len(panels), least, x, panels, y, ends)
    least = least_of(work * TALL * len(panels))
    return work_over_range(_by_rows, blocks, least, x, panels, y, ends)


def serves(depth: int, itemsize: int) -> bool:
    """Return whether rows of so many numbers find room side by side in L1.

    Those of whole pages all lie in the same few places of it, which are less than a block's rows.
    """
    return depth * itemsize % PAGE != 0


def _idle(items: int) -> float:
    """Return the share of the threads' time that has no work where items are shared out."""
    count = min(threads(), items)
    return 1 - items / (-(-items // count) * count)


def _if(
    builder: ir.IRBuilder, condition: Any, values: list[Any], change: Callable[[list[Any]], Any]
) -> list[Any]:
    """Generate vectors that are changed where a condition holds."""
    before, then = builder.block, builder.append_basic_block("then")
    after = builder.append_basic_block("after")
    builder.cbranch(condition, then, after)
    builder.position_at_end(then)
    changed = change(values)
    end = builder.block
    builder.branch(after)
    builder.position_at_end(after)
    found = []
    for old, new in zip(values, changed, strict=True):
        phi = builder.phi(old.type)
        phi.add_incoming(old, before)
        phi.add_incoming(new, end)
        found.append(phi)
    return found


def _block(rows: int, halves: int, narrow: bool) -> Any:
    """Return a function of numba that computes ``rows`` x ``halves`` vectors of results.

    Its arguments: an array of the dtype; the addresses of the first row of A, of a panel's part
    and of the first row of results; and a tuple: the summands; the bytes from row to row of A and
    of results; whether to add to what is there, and whether this is the end; then the bias'
    address, the bytes from a result to what is beside it (0: nothing is), both limits, and the
    columns of results, which count where a panel is ``narrow``.
    """

    def generate(context, builder, signature, args):
        like = signature.args[0]
        number, size = context.get_data_type(like.dtype), like.dtype.bitwidth // 8
        a, b, y = args[1:4]
        plan = cgutils.unpack_tuple(builder, args[4])
        depth, a_step, y_step, add, last, bias, beside, low, high, columns = plan
        vector, width = ir.VectorType(number, LANES), LANES * size
        short = f"v{LANES}f{8 * size}"
        undefined = ir.Constant(vector, ir.Undefined)
        nothing = ir.Constant(vector, [0.0] * LANES)
        first_lane = ir.Constant(ir.VectorType(_I32, LANES), [0] * LANES)
        # The last vector of a narrow panel has lanes of columns that there are not.
        lanes = ir.VectorType(_I32, LANES)
        left = all_lanes(builder, lanes, builder.trunc(columns, _I32))
        own = [(halves - 1) * LANES + lane for lane in range(LANES)]
        mask = builder.icmp_signed(">", left, ir.Constant(lanes, own))

        def masked(what, result, *given):
            function = ir.FunctionType(result, [value.type for value in given])
            name = f"llvm.masked.{what}.{short}.p0{short}"
            return builder.call(
                cgutils.get_or_insert_function(builder.module, function, name), given
            )

        def read(place, half):
            if not narrow or half + 1 < halves:
                return load(builder, place, half * width, vector, size)
            place = builder.gep(place, [whole(half * width)]) if half else place
            place = builder.bitcast(place, vector.as_pointer())
            return masked("load", vector, place, ir.Constant(_I32, size), mask, nothing)

        def write(value, place, half):
            place = builder.gep(place, [whole(half * width)]) if half else place
            place = builder.bitcast(place, vector.as_pointer())
            if not narrow or half + 1 < halves:
                builder.store(value, place).align = size
            else:
                masked("store", ir.VoidType(), value, place, ir.Constant(_I32, size), mask)

        def steps(start, step):
            return [builder.add(start, builder.mul(step, whole(i))) for i in range(rows)]

        lines = [builder.inttoptr(place, BYTE) for place in steps(a, a_step)]
        panel = builder.inttoptr(b, BYTE)
        before, inner = builder.block, builder.append_basic_block("summand")
        after = builder.append_basic_block("result")
        builder.branch(inner)

        builder.position_at_end(inner)
        k, at_b = builder.phi(whole(0).type), builder.phi(BYTE)
        totals = [builder.phi(vector) for _ in range(rows * halves)]
        values = [load(builder, at_b, half * width, vector, size) for half in range(halves)]
        sums = []
        for i, line in enumerate(lines):
            place = builder.gep(line, [builder.mul(k, whole(size))])
            factor = load(builder, place, 0, number, size)
            lane = builder.insert_element(undefined, factor, ir.Constant(_I32, 0))
            factors = builder.shuffle_vector(lane, undefined, first_lane)
            for half, value in enumerate(values):
                product = builder.fmul(factors, value, flags=("contract",))
                total = totals[halves * i + half]
                sums.append(builder.fadd(total, product, flags=("contract",)))
        following = builder.add(k, whole(1))
        for phi, first, new in [
            (k, whole(0), following),
            (at_b, panel, builder.gep(at_b, [whole(COLUMNS * size)])),
            *((phi, nothing, new) for phi, new in zip(totals, sums, strict=True)),
        ]:
            phi.add_incoming(first, before)
            phi.add_incoming(new, inner)
        builder.cbranch(builder.icmp_signed("<", following, depth), inner, after)

        builder.position_at_end(after)
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
            others = [builder.gep(place, [beside]) for place in targets]
            some = builder.icmp_signed("!=", beside, whole(0))
            values = _if(builder, some, values, plus(others))
            for sign, limit in (("<", low), (">", high)):
                edge = all_lanes(builder, vector, limit)
                # NaN is neither below nor above.
                values = [
                    builder.select(builder.fcmp_ordered(sign, v, edge), edge, v) for v in values
                ]
            return values

        results = _if(builder, add, sums, plus(targets))
        results = _if(builder, last, results, ended)
        for i, value in enumerate(results):
            write(value, targets[i // halves], i % halves)
        return context.get_dummy_value()

    @intrinsic
    def block(context, like, a, b, y, plan):
        return types.void(like, *[types.intp] * 3, plan), generate

    return block


_tall, _short, _one = (_block(n, 2, False) for n in (TALL, SHORT, 1))
_tall_narrow, _short_narrow, _one_narrow = (_block(n, 2, True) for n in (TALL, SHORT, 1))
_tall_half, _short_half, _one_half = (_block(n, 1, True) for n in (TALL, SHORT, 1))


@jit
def _by_rows(x, panels, y, ends, which, start, stop):
    """Compute the blocks of rows ``start`` to ``stop``."""
    first, end = start * TALL, min(stop * TALL, x.shape[0])
    length = max(4 * TALL, KEPT // (panels.shape[1] * x.itemsize) // TALL * TALL)
    parts = -(-(end - first) // length)
    length = -(-(end - first) // (parts * TALL)) * TALL
    for begin in range(first, end, length):
        last = min(begin + length, end)
        product(x, 0, panels, y, ends, begin, last, 0, panels.shape[0])


@jit
def _by_panels(x, panels, y, ends, which, start, stop):
    """Compute the columns of the panels ``start`` to ``stop``."""
    product(x, 0, panels, y, ends, 0, x.shape[0], start, stop)


@jit
def product(x, before, panels, y, ends, first, end, start, stop):
    """Compute the rows ``first`` to ``end`` of some panels' columns; x has none of those before."""
    depth, size, width = panels.shape[1], x.itemsize, y.shape[1]
    from_x = address(x) - before * x.shape[1] * size
    slices = -(-depth // DEPTH)
    length = -(-depth // slices)
    for s in range(slices):
        here, add, last = s * length, s > 0, s + 1 == slices
        for j in range(start, stop):
            _panel(
                x, from_x + here * size, min(length, depth - here),
                address(panels) + (j * depth + here) * COLUMNS * size, y, j * COLUMNS * size, add,
                last, ends, first, end, width - j * COLUMNS,
            )  # fmt: skip


@jit
def _panel(x, a, depth, b, y, offset, add, last, ends, first, end, left):
    """Compute some rows of one panel's columns."""
    a_step, y_step = x.shape[1] * x.itemsize, y.shape[1] * x.itemsize
    bias, beside = address(ends[0]) + offset, address(ends[1]) - address(y)
    plan = depth, a_step, y_step, add, last, bias, beside, ends[2][0], ends[2][1], left
    row, kind = first, 0 if left >= COLUMNS else 1 if left > LANES else 2
    while row < end:
        height = TALL if end - row >= TALL else SHORT if end - row >= SHORT else 1
        _rows(x, a + row * a_step, b, address(y) + offset + row * y_step, plan, height, kind)
        row += height


@jit
def _rows(x, a, b, y, plan, height, kind):
    """Compute so many rows of a panel: a whole one, a narrow one, or one of half its columns."""
    if height == TALL and kind == 0:
        _tall(x, a, b, y, plan)
    elif height == TALL and kind == 1:
        _tall_narrow(x, a, b, y, plan)
    elif height == TALL:
        _tall_half(x, a, b, y, plan)
    elif height == SHORT and kind == 0:
        _short(x, a, b, y, plan)
    elif height == SHORT and kind == 1:
        _short_narrow(x, a, b, y, plan)
    elif height == SHORT:
        _short_half(x, a, b, y, plan)
    elif kind == 0:
        _one(x, a, b, y, plan)
    elif kind == 1:
        _one_narrow(x, a, b, y, plan)
    else:
        _one_half(x, a, b, y, plan)
