"""Reductions over cells of channels-last images, in LLVM's vectors of channels.

A *cell* is a row of channels, such as a pixel. Each function here takes a table of cells and
reduces them channel by channel. A block of channels stays in registers from the first cell to the
last, so that every number is read once and every result written once.

The functions work only inside numba functions. ``table`` is an int64 array (at least ``count``, 2):
each cell's offset in elements from ``source``, and its tag. ``source`` and ``target`` are indices
of flat C-contiguous arrays; ``channels`` is the length of a cell.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from daskdl.kernels.products.microkernel import LANES
from daskdl.kernels.runtime.llvm import (
    BYTE,
    I32,
    I64,
    all_lanes,
    fetch_line,
    lanes_below,
    load,
    size_of,
    store,
    whole,
)
from daskdl.kernels.runtime.memory import ALIGNMENT

#: Vectors of channels that stay in registers together: for sums, and for maxima with their tags.
SUMS, MAXIMA = 8, 4

#: Distance of prefetches for maxima, in numbers: with so much arithmetic, the processor's own
#: prefetches do not reach far enough. Sums are faster without.
AHEAD = 128


class _Block(NamedTuple):
    """Channels that are reduced together: whole vectors, or with a mask a part of one."""

    vectors: int
    mask: Any = None


@intrinsic
def largest(context, x, y, tags, table, count, channels, source, target):
    """Write the largest of cells of x to y from ``target`` on, and its cell's tag to ``tags``.

    The first of equal numbers wins, and the last NaN over all. If all are -infinity, the tag is the
    table's first. ``tags`` is an array of unsigned integers of y's shape, or None. x and y are
    floats or bytes.
    """
    untold = isinstance(tags, types.NoneType)
    signature = types.void(x, y, tags, table, *[types.intp] * 4)

    def generate(context, builder, signature, args):
        _, _, _, _, count, channels, source, target = args
        starts = (source, target, None if untold else target, whole(0))
        x, y, tags, entries = _rows(context, builder, signature, args, starts)
        bytes_of_x = isinstance(x.type.pointee, ir.IntType)
        least = ir.Constant(x.type.pointee, 0 if bytes_of_x else float("-inf"))
        first = builder.trunc(builder.load(builder.gep(entries, [whole(1)])), I32)

        def begin(block):
            return [_same(builder, value) for value in (least, first) for _ in range(block.vectors)]

        def step(state, cell, tag, block):
            n = block.vectors
            best, wheres = [], []
            here = _same(builder, builder.trunc(tag, I32))
            values = _load(builder, x, cell, block)
            if n > 1:
                _prefetch(builder, x, builder.add(cell, whole(AHEAD)), LANES * n)
            for value, high, where in zip(values, state[:n], state[n:], strict=True):
                if bytes_of_x:
                    more = builder.icmp_unsigned(">", value, high)
                else:
                    above = builder.fcmp_ordered(">", value, high)
                    more = builder.or_(above, builder.fcmp_unordered("uno", value, value))
                best.append(builder.select(more, value, high))
                wheres.append(builder.select(more, here, where))
            return best + wheres

        def finish(state, channel, block):
            n = block.vectors
            _store(builder, state[:n], y, channel, block)
            if untold:
                return
            kind = _vector(tags.type.pointee)
            wheres = [builder.trunc(v, kind) if v.type != kind else v for v in state[n:]]
            _store(builder, wheres, tags, channel, block)

        _by_channels(builder, MAXIMA, entries, count, channels, begin, step, finish)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def sum_where(context, x, y, tags, table, count, channels, source, target, weight, past, of_x):
    """Write ``weight`` times the sum of x's cells with matching tags to y from ``target`` on.

    ``tags`` is an array of unsigned integers of x's shape: a number counts if its tag equals its
    cell's tag in the table. With None, all numbers count. With ``past``, y bypasses the caches; it
    and its rows of channels have to be aligned to vectors. ``of_x`` is None for floats; bytes stand
    for ``(byte - of_x[1]) * of_x[0]``.
    """
    every, of_floats = isinstance(tags, types.NoneType), isinstance(of_x, types.NoneType)
    signature = types.void(x, y, tags, table, *[types.intp] * 4, y.dtype, types.boolean, of_x)

    def generate(context, builder, signature, args):
        _, _, _, _, count, channels, source, target, weight, past, of_x = args
        starts = (source, target, None if every else source, whole(0))
        x, y, tags, entries = _rows(context, builder, signature, args, starts)
        zero = ir.Constant(y.type.pointee, 0.0)

        def begin(block):
            return [_same(builder, zero)] * block.vectors

        def step(sums, cell, tag, block):
            values = _load(builder, x, cell, block)
            if not of_floats:
                scale, offset = (_same(builder, builder.extract_value(of_x, i)) for i in (0, 1))
                floats = [builder.uitofp(value, scale.type) for value in values]
                values = [builder.fmul(builder.fsub(f, offset), scale) for f in floats]
            if not every:
                here = _same(builder, builder.trunc(tag, tags.type.pointee))
                wheres = _load(builder, tags, cell, block)
                nothing = _same(builder, zero)
                values = [
                    builder.select(builder.icmp_unsigned("==", where, here), value, nothing)
                    for value, where in zip(values, wheres, strict=True)
                ]
            return [builder.fadd(a, b) for a, b in zip(sums, values, strict=True)]

        def finish(sums, channel, block):
            factor = _same(builder, weight)
            _store(builder, [builder.fmul(s, factor) for s in sums], y, channel, block, past)

        _by_channels(builder, SUMS, entries, count, channels, begin, step, finish)
        return context.get_dummy_value()

    return signature, generate


def _vector(number: ir.Type) -> ir.Type:
    return ir.VectorType(number, LANES)


def _same(builder: ir.IRBuilder, value: Any) -> Any:
    return all_lanes(builder, _vector(value.type), value)


def _rows(context, builder, signature, args, starts):
    """Return pointers to the elements ``starts`` of the first arguments, arrays; None for None."""
    return [
        None
        if start is None
        else builder.gep(context.make_array(kind)(context, builder, array).data, [start])
        for kind, array, start in zip(signature.args, args, starts, strict=False)
    ]


def _places(builder, row, offset, kind, vectors):
    """Return pointers to successive vectors from an element on."""
    first = builder.bitcast(builder.gep(row, [offset]), kind.as_pointer())
    return [builder.gep(first, [whole(i)]) for i in range(vectors)]


def _load(builder, row, offset, block):
    number = row.type.pointee
    places = _places(builder, row, offset, _vector(number), block.vectors)
    size = size_of(number)
    return [load(builder, place, 0, _vector(number), size, block.mask) for place in places]


def _prefetch(builder, row, offset, numbers):
    first = builder.bitcast(builder.gep(row, [offset]), BYTE)
    for line in range(0, numbers * size_of(row.type.pointee), ALIGNMENT):
        fetch_line(builder, builder.gep(first, [whole(line)]), 3)


def _store(builder, values, row, offset, block, past=None):
    kind, size = values[0].type, size_of(row.type.pointee)
    places = _places(builder, row, offset, kind, block.vectors)

    def near() -> None:
        for value, place in zip(values, places, strict=True):
            store(builder, value, place, 0, size, block.mask)

    if past is None or block.mask is not None:
        near()
        return
    with builder.if_else(past) as (then, otherwise):
        with then:
            one = builder.module.add_metadata([ir.Constant(I32, 1)])
            for value, place in zip(values, places, strict=True):
                there = builder.store(value, place, align=size * kind.count)
                there.set_metadata("nontemporal", one)
        with otherwise:
            near()


def _by_channels(
    builder: ir.IRBuilder, most: int, entries, count, channels,
    begin: Callable[..., Any], step: Callable[..., Any], finish: Callable[..., Any],
):  # fmt: skip
    """Generate loops over blocks of channels, as wide as possible, and over cells.

    The widest blocks have ``most`` vectors; the last has a part of one. ``begin(block)`` returns
    the values that stay in registers; ``step(values, element, tag, block)`` returns them after one
    more cell, whose block begins at an element; ``finish(values, channel, block)`` writes them.
    """
    channel: Any = whole(0)
    for vectors in (most, 1, 0):
        before = builder.block
        head, outer, inner, cell, done, after = (
            builder.append_basic_block(name)
            for name in ("more", "channels", "cells", "cell", "done", "after")
        )
        builder.branch(head)

        builder.position_at_end(head)
        start, channel = channel, builder.phi(I64)
        channel.add_incoming(start, before)
        following = builder.add(channel, whole(LANES * max(1, vectors)))
        last = following if vectors else builder.add(channel, whole(1))
        builder.cbranch(builder.icmp_signed("<=", last, channels), outer, after)

        builder.position_at_end(outer)
        block = _Block(vectors) if vectors else _Block(1, _lanes_left(builder, channels, channel))
        first = begin(block)
        builder.branch(inner)

        builder.position_at_end(inner)
        index = builder.phi(I64)
        state = [builder.phi(value.type) for value in first]
        builder.cbranch(builder.icmp_signed("<", index, count), cell, done)

        builder.position_at_end(cell)
        entry = builder.gep(entries, [builder.mul(index, whole(2))])
        element = builder.add(builder.load(entry), channel)
        new = step(state, element, builder.load(builder.gep(entry, [whole(1)])), block)
        for phi, initial, later in [
            (index, whole(0), builder.add(index, whole(1))),
            *zip(state, first, new, strict=True),
        ]:
            phi.add_incoming(initial, outer)
            phi.add_incoming(later, cell)
        builder.branch(inner)

        builder.position_at_end(done)
        finish(state, channel, block)
        channel.add_incoming(following, builder.block)
        builder.branch(head)
        builder.position_at_end(after)


def _lanes_left(builder, channels, channel):
    """Return a mask of a vector's lanes from a channel to the last."""
    return lanes_below(builder, LANES, builder.sub(channels, channel))
