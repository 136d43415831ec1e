"""Products of few rows with fixed weights, which are packed once for all steps.

At each step of a sequence a BLAS would copy the weights into its own order again; for the few
samples of a batch, this takes longer than multiplying.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from daskdl.kernels.products import bfloat16
from daskdl.kernels.products.finish import added_if
from daskdl.kernels.products.microkernel import (
    COLUMNS,
    DEPTH,
    FEW_ROWS,
    LANES,
    ROWS,
    SEGMENT,
    address,
    fetch,
    keep,
    multiply,
    multiply_few,
    multiply_one,
)
from daskdl.kernels.products.packing import pack_all
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.llvm import BYTE, all_lanes, load, repeated, store, whole
from daskdl.kernels.runtime.memory import aligned
from daskdl.kernels.tiles.instructions import BLOCK, SIDE, begin_tiles, end_tiles
from daskdl.kernels.tiles.panels import Tiles, multiply_rows
from daskdl.kernels.tiles.trusted import usable

Array = NDArray[np.floating]

#: Bytes of a cache line.
LINE = 64


#: Panels that multiply a row together: the two sums of one panel would wait for each other, eight
#: sums keep the processor busy.
TOGETHER = 4


@intrinsic
def multiply_panels(context, like, row, depth, panels, step, target, add):
    """Write, or add, a row's products with ``TOGETHER`` panels: the bits of :data:`multiply_one`.

    Arguments are an array of the dtype; the row's address and its length; the first panel's address
    and the bytes to the next one; the address of the results; whether to add to them.
    """
    signature = types.void(like, *[types.intp] * 5, types.boolean)

    def generate(context, builder, signature, args):
        kind = signature.args[0].dtype
        number, size = context.get_data_type(kind), kind.bitwidth // 8
        _, row, depth, panels, step, target, add = args
        vector, width = ir.VectorType(number, LANES), LANES * size
        nothing = ir.Constant(vector, [0.0] * LANES)
        to = builder.inttoptr(target, BYTE)
        places = [builder.gep(to, [whole(i * width)]) for i in range(2 * TOGETHER)]
        starts = [
            builder.inttoptr(builder.add(panels, builder.mul(step, whole(i))), BYTE)
            for i in range(TOGETHER)
        ]

        def summand(k, *totals):
            at_a = builder.gep(builder.inttoptr(row, BYTE), [builder.mul(k, whole(size))])
            factors = all_lanes(builder, vector, load(builder, at_a, 0, number, size))
            behind, sums = builder.mul(k, whole(COLUMNS * size)), []
            for i, total in enumerate(totals):
                place = builder.gep(starts[i // 2], [behind])
                value = load(builder, place, i % 2 * width, vector, size)
                product = builder.fmul(factors, value, flags=("contract",))
                sums.append(builder.fadd(total, product, flags=("contract",)))
            return sums

        sums = repeated(builder, depth, [nothing] * len(places), summand)
        for value, place in zip(added_if(builder, add, sums, places), places, strict=True):
            store(builder, value, place, 0, size)
        return context.get_dummy_value()

    return signature, generate


def packed(weight: Array, precision: str = "float32") -> Any:
    """Return weights (K, M) in panels (M / COLUMNS, K, COLUMNS), the last filled with zeros.

    In bfloat16 they are pairs (M / COLUMNS, K / 2, COLUMNS); in the order of tiles, pairs as
    :class:`~daskdl.kernels.tiles.panels.Tiles`.
    """
    if precision == "bf16-tiles":
        depth = -len(weight) % (2 * SIDE)
        filled = np.pad(weight, ((0, depth), (0, 0)))
        return Tiles(packed(filled, "bf16-pairs"), usable())
    if precision == "bf16-pairs":
        panels = bfloat16.columns_of(weight.T) if weight.T.flags.c_contiguous else None
        words = (bfloat16.rows_of(weight) if panels is None else panels)[:, 0]
        copy = aligned(words.shape, words.dtype)
        copy[...] = words
        return copy
    depth, width = weight.shape
    panels = aligned((-(-width // COLUMNS), 1, depth, COLUMNS), weight.dtype)
    turned = weight.T.flags.c_contiguous
    contiguous = np.require(weight.T if turned else weight, requirements=("C", "A", "W"))
    pack_all(contiguous[:, None], np.zeros(1, np.int64), not turned, panels, 0, 0, len(panels))
    return panels[:, 0]


def _operand(a, panels):
    """Return the rows to multiply with panels: unchanged, or as pairs of bfloat16."""
    raise NotImplementedError("for numba functions")


@overload(_operand)
def _operand_of(a, panels):
    if panels.dtype != types.uint32:
        return lambda a, panels: a
    return lambda a, panels: _rounded(a, a.shape[0], panels.shape[1])


@jit
def _rounded(a, rows, pairs):
    """Return rows (rows, pairs) of pairs: the rows of a, rounded; rows after them are arbitrary."""
    words = np.empty((rows, pairs), np.uint32)
    for r in range(a.shape[0]):
        source, target = address(a) + r * a.strides[0], address(words) + r * pairs * 4
        bfloat16.round_row(source, a.shape[1], target, pairs)
    keep(a)
    return words


@jit
def room_for(rows, like):
    """Return memory for :func:`product` of ``rows`` rows."""
    groups = -(-rows // ROWS)
    return (
        np.empty((groups, SEGMENT), np.int64),
        np.empty((2, groups, ROWS), np.int64),
        np.empty((groups * ROWS, COLUMNS), like.dtype),
    )


@jit
def _large(rows):
    """Return the number of groups of :data:`ROWS` rows; the last groups have :data:`FEW_ROWS`.

    The split leaves the fewest rows idle: eight rows are two small groups.
    """
    over = rows % ROWS
    small = 0 if over in (0, ROWS - 1) else 2 if over <= 2 * FEW_ROWS - ROWS else 1
    return max(0, -(-rows // ROWS) - small)


@jit
def _first(group, large):
    """Return the first row of a group."""
    return min(group, large) * ROWS + max(group - large, 0) * FEW_ROWS


@jit
def following(sequence, t, backwards, start, stop):
    """Return some rows (T, rows, M) of the step after ``t``, or of ``t`` if it is the last."""
    return sequence[max(t - 1, 0) if backwards else min(t + 1, sequence.shape[0] - 1), start:stop]


def _by_panels(a, panels, c, more, begin, length):
    """Multiply a row with ``TOGETHER`` panels at a time while possible; return the next panel."""
    raise NotImplementedError("for numba functions")


@overload(_by_panels)
def _by_panels_of(a, panels, c, more, begin, length):
    if panels.dtype == types.uint32:
        return lambda a, panels, c, more, begin, length: 0

    def implementation(a, panels, c, more, begin, length):
        size = a.itemsize
        step, line = panels.shape[1] * COLUMNS * size, COLUMNS * size
        j = 0
        while (j + TOGETHER) * COLUMNS <= c.shape[1]:
            panel = address(panels) + j * step + begin * line
            to = address(c) + j * line
            multiply_panels(a, address(a) + begin * size, length, panel, step, to, more)
            j += TOGETHER
        return j

    return implementation


def product(a, panels, c, add, room, soon):
    """Compute ``c = a @ weights``, or ``c += a @ weights``; see :func:`by_vectors`."""
    raise NotImplementedError("for numba functions")


@overload(product)
def _product_of(a, panels, c, add, room, soon):
    if isinstance(panels, types.BaseTuple):
        return lambda a, panels, c, add, room, soon: _by_tiles(a, panels, c, add)
    return lambda a, panels, c, add, room, soon: by_vectors(a, panels, c, add, room, soon, DEPTH)


@jit
def _by_tiles(a, tiles, c, add):
    """Compute :func:`product` in the order of tiles."""
    panels, amx = tiles
    rows, depth, line = a.shape[0], panels.shape[1], COLUMNS * 4
    words = _rounded(a, -(-rows // BLOCK) * BLOCK, depth)
    whole, remaining = c.shape[1] // COLUMNS, c.shape[1] % COLUMNS
    table, apart = np.empty(depth // SIDE, np.int64), depth * line
    if amx:
        begin_tiles()
    multiply_rows(
        amx, (rows, whole, depth), address(words), depth * 4, 4, address(panels), apart,
        address(c), c.strides[0], add, table,
    )  # fmt: skip
    if remaining:
        last = np.empty((rows, COLUMNS), np.float32)
        for r in range(rows):
            last[r, :remaining] = c[r, whole * COLUMNS :]
            last[r, remaining:] = 0
        multiply_rows(
            amx, (rows, 1, depth), address(words), depth * 4, 4, address(panels) + whole * apart,
            apart, address(last), line, add, table,
        )  # fmt: skip
        for r in range(rows):
            c[r, whole * COLUMNS :] = last[r, :remaining]
    if amx:
        end_tiles()
    keep(words)
    keep(panels)


@jit
def by_vectors(a, panels, c, add, room, soon, most):
    """Compute ``c = a @ weights``, or ``c += a @ weights``, inside a numba function.

    Panels of the weights (K, M) are from :func:`packed`; they are uint32 for products in bfloat16.
    The rows of a (rows, K) and c (rows, M) are contiguous, but there may be gaps between rows.
    ``room`` is for at least as many rows. ``soon`` is the contiguous array that is read next: it is
    prefetched while the products are computed. Sums go to memory after ``most`` summands.
    """
    table, targets, spare = room
    a = _operand(a, panels)
    rows, depth, width, size = a.shape[0], a.shape[1], c.shape[1], a.itemsize
    groups, large = -(-rows // ROWS), _large(rows)
    from_a, to_c, aside = address(a), address(c), address(spare)
    # Views count references, which slows a product down: so flat indices and addresses only.
    entries, places = table.reshape(-1), targets.reshape(-1)
    at_table, at_places, other = address(table), address(targets), targets.shape[1] * ROWS
    line = COLUMNS * size
    calls = max(1, -(-depth // most) * panels.shape[0] * groups)
    ahead, end = address(soon), address(soon) + soon.size * size
    share = -(-soon.size * size // (calls * LINE)) * LINE
    for r in range(groups * ROWS):  # after the last row, repeat it
        row = min(_first(r // ROWS, large) + r % ROWS, rows - 1)
        places[r] = to_c + row * c.strides[0]
        places[other + r] = aside + row * line
    for begin in range(0, depth, most):
        more = add or begin > 0
        for r in range(groups * ROWS):
            entry = r // ROWS * SEGMENT + r % ROWS
            row = min(_first(r // ROWS, large) + r % ROWS, rows - 1)
            entries[entry] = from_a + row * a.strides[0] + begin * size
        for group in range(groups):
            entries[group * SEGMENT + ROWS] = 0
            entries[group * SEGMENT + ROWS + 1] = min(most, depth - begin)
        first = 0
        if rows == 1:
            first = _by_panels(a, panels, c, more, begin, min(most, depth - begin))
        for j in range(first, panels.shape[0]):
            remaining = width - j * COLUMNS
            whole = remaining >= COLUMNS
            panel = address(panels) + (j * depth + begin) * line
            target, offset = (at_places, j * line) if whole else (at_places + other * 8, 0)
            for group in range(groups):
                for place in range(ahead, min(ahead + share, end), LINE):
                    fetch(place)
                ahead += share
                entry, to = at_table + group * SEGMENT * 8, target + group * ROWS * 8
                if rows == 1:
                    multiply_one(a, entry, 1, size, panel, line, to, offset, more and whole)
                elif group >= large:
                    multiply_few(a, entry, 1, size, panel, line, to, offset, more and whole)
                else:
                    multiply(a, entry, 1, size, panel, line, to, offset, more and whole)
            if not whole:
                for r in range(rows):
                    for k in range(remaining):
                        old = c[r, j * COLUMNS + k] if more else 0
                        c[r, j * COLUMNS + k] = old + spare[r, k]
    keep(a)
