"""AMX: a block of 32 x 32 sums by tile registers of 16 rows of 64 bytes, from inline assembly.

LLVM assembles these mnemonics for any x86-64 processor, so that a kernel with both ways compiles
everywhere. Execute them only if :func:`daskdl.kernels.tiles.trusted.usable` returns True, else they
raise SIGILL. See Intel's Software Developer's Manual, volume 1, chapter 18.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from daskdl.kernels.runtime.llvm import I64

#: Rows and columns of a tile, and bytes of each of its rows.
SIDE, LINE = 16, 64
#: Bytes of a tile.
TILE = SIDE * LINE
#: Rows and columns of sums that are computed together: 2 x 2 tiles.
BLOCK = 2 * SIDE

#: Tiles by which prefetches of cold panels are ahead.
COLD = 4

# Here, not where assembly is generated: a process may compile a caller but take the function with
# the assembly from the cache.
llvmlite.binding.initialize_native_asmparser()


def _assembly(text: str, operands: int) -> Any:
    """Return a function that generates instructions with ``operands`` int64 operands."""

    def generate(builder: ir.IRBuilder, *values: Any) -> None:
        kind = ir.FunctionType(ir.VoidType(), [I64] * operands)
        constraints = ",".join(["r"] * operands + ["~{memory}"])
        builder.asm(kind, text, constraints, list(values), side_effect=True)

    return generate


_configure = _assembly("ldtilecfg ($0)", 1)
_release = _assembly("tilerelease", 0)
_clear = _assembly("\n".join(f"tilezero %tmm{i}" for i in range(4)), 0)
# $0: the first row of sums, $1: bytes from row to row, $2: the first row of the lower tiles.
_places = ("($0,$1,1)", "64($0,$1,1)", "($2,$1,1)", "64($2,$1,1)")
_read = _assembly("\n".join(f"tileloadd {p}, %tmm{i}" for i, p in enumerate(_places)), 3)
_write = _assembly("\n".join(f"tilestored %tmm{i}, {p}" for i, p in enumerate(_places)), 3)


@intrinsic
def begin_tiles(context):
    """Configure this thread's tiles: eight of 16 rows of 64 bytes."""

    def generate(context, builder, signature, args):
        text = np.zeros(64, np.uint8)
        text[0] = 1  # the palette
        text[16:32].view(np.uint16)[:] = LINE
        text[48:56] = SIDE
        kind = ir.ArrayType(ir.IntType(8), 64)
        place = builder.alloca(kind)
        builder.store(ir.Constant(kind, bytearray(text.tobytes())), place)
        _configure(builder, builder.ptrtoint(place, I64))
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def end_tiles(context):
    """Release this thread's tiles; otherwise each switch of threads saves their state."""

    def generate(context, builder, signature, args):
        _release(builder)
        return context.get_dummy_value()

    return types.void(), generate


_PRODUCTS = """
    1:
    FETCHES
    mov ($0), $5
    add $$8, $0
    lea ($6,$5,1), $4
    add $7, $5
    tileloadd ($4,$8,1), %tmm4
    tileloadd ($1,$9,1), %tmm6
    OPERATION %tmm6, %tmm4, %tmm0
    tileloadd ($2,$9,1), %tmm7
    OPERATION %tmm7, %tmm4, %tmm1
    tileloadd ($5,$8,1), %tmm5
    OPERATION %tmm6, %tmm5, %tmm2
    OPERATION %tmm7, %tmm5, %tmm3
    add $10, $1
    add $10, $2
    dec $3
    jnz 1b
    """
# Six outputs that change while inputs are still in use; the last four inputs are tied to four.
_PLACES = ",".join(["=&r"] * 6 + ["r"] * 5 + ["0", "1", "2", "3", "~{memory}", "~{cc}"])


def _product_by(operation: str, ahead: Sequence[int] = ()) -> Any:
    """Return numba functions that multiply tiles by an instruction, and that only add products.

    At each tile of B they bring the lines ``ahead``, in bytes, of the one at ``left`` to L2.

    The first adds products of tiles to a block of 32 x 32 sums, or writes them there. ``table`` has
    ``count`` int64, at least one: the offset in bytes of each tile of A from ``upper`` and
    ``lower``. These are the addresses of the first and the second 16 rows of A, ``a_step`` bytes
    apart. ``left`` and ``right`` are the addresses of the first tiles of 16 columns of B;
    ``b_step`` leads from tile to tile, ``b_line`` from row to row of a tile. ``c`` is the sums'
    address, ``c_step`` leads from row to row.

    The second leaves the sums in tiles, between :func:`clear_sums` and :func:`write_sums`.
    """
    fetches = "".join(f"prefetcht1 {offset}($1)\n" for offset in ahead)
    text = _PRODUCTS.replace("OPERATION", operation).replace("FETCHES", fetches)

    def products(builder, table, count, upper, lower, a_step, left, right, b_step, b_line):
        inputs = [upper, lower, a_step, b_line, b_step, table, left, right, count]
        kind = ir.FunctionType(ir.LiteralStructType([I64] * 6), [I64] * len(inputs))
        builder.asm(kind, text, _PLACES, inputs, side_effect=True)

    @intrinsic
    def multiply(
        context, table, count, upper, lower, a_step, left, right, b_step, b_line, c, c_step, add
    ):  # fmt: skip
        def generate(context, builder, signature, args):
            c, c_step, add = args[9:]
            below = builder.add(c, builder.mul(c_step, ir.Constant(I64, SIDE)))
            with builder.if_else(add) as (then, otherwise):
                with then:
                    _read(builder, c, c_step, below)
                with otherwise:
                    _clear(builder)
            products(builder, *args[:9])
            _write(builder, c, c_step, below)
            return context.get_dummy_value()

        return types.void(*[types.intp] * 11, types.boolean), generate

    @intrinsic
    def add_products(context, table, count, upper, lower, a_step, left, right, b_step, b_line):
        def generate(context, builder, signature, args):
            products(builder, *args)
            return context.get_dummy_value()

        return types.void(*[types.intp] * 9), generate

    return multiply, add_products


@intrinsic
def clear_sums(context):
    """Begin a block of sums with zeros."""

    def generate(context, builder, signature, args):
        _clear(builder)
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def write_sums(context, c, c_step):
    """Write a block of sums."""

    def generate(context, builder, signature, args):
        _write(builder, *args, builder.add(args[0], builder.mul(args[1], ir.Constant(I64, SIDE))))
        return context.get_dummy_value()

    return types.void(types.intp, types.intp), generate


#: Pairs of bfloat16 numbers, with float32 sums.
multiply_bfloat16, add_bfloat16 = _product_by("tdpbf16ps")
#: Four unsigned bytes of A with four signed ones of B, with int32 sums.
multiply_bytes, _ = _product_by("tdpbusd")
#: The same for panels of 64 columns that are not in L2 yet.
multiply_cold_bytes, _ = _product_by(
    "tdpbusd",
    [COLD * SIDE * 4 * LINE + 4 * LINE * row + half for row in range(SIDE) for half in (0, LINE)],
)
