"""Products of four bytes at a time, added to int32 sums: the same integers on all processors.

A word has 32 bits: four unsigned numbers of A, or four signed ones of B, successive summands.
VPDPBUSD of AVX512_VNNI and AVX_VNNI adds up the four products (Intel, Software Developer's Manual,
volume 2). Without it numbers are widened to 16 bits, B's in advance, and VPMADDWD multiplies
them two by two: the 8-bit instruction of AVX2, VPMADDUBSW, saturates sums at 16 bits.
"""

from __future__ import annotations

import platform
from typing import Any

import llvmlite.binding
from llvmlite import ir

from daskdl.compat.numba_compiler import features
from daskdl.kernels.runtime.llvm import called

#: Ways to multiply: by VPDPBUSD; by 16-bit pairs with VPMADDWD; by 16-bit pairs without it.
WAYS = ("vnni", "pairs", "plain")

# Here, not where assembly is generated: a process may compile a caller but take the function with
# the assembly from the cache.
llvmlite.binding.initialize_native_asmparser()


def way_of(lanes: int) -> str:
    """Return the fastest of :data:`WAYS` for vectors of ``lanes`` words."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return "plain"
    needed = "avx512vnni" if lanes == 16 else "avxvnni"
    return "vnni" if needed in features() else "pairs"


def parts_of(way: str) -> int:
    """Return the number of vectors for the four numbers of B's words: one, or two of pairs."""
    return 1 if way == "vnni" else 2


class Words:
    """Generates products of vectors of ``lanes`` words, 16 or 8, in one of :data:`WAYS`."""

    def __init__(self, way: str, lanes: int) -> None:
        self.way, self.lanes = way, lanes
        self.kind = ir.VectorType(ir.IntType(32), lanes)
        self._shorts = ir.VectorType(ir.IntType(16), 2 * lanes)

    def left(self, builder: ir.IRBuilder, a: Any) -> Any:
        """Generate the form of words of A that :meth:`add` takes, once for all their products."""
        if self.way == "vnni":
            return [a]
        shorts = builder.bitcast(a, self._shorts)
        eight = ir.Constant(self._shorts, [8] * 2 * self.lanes)
        return [builder.and_(a, self._all(0x00FF00FF)), builder.lshr(shorts, eight)]

    def add(self, builder: ir.IRBuilder, total: Any, a: Any, b: Any) -> Any:
        """Generate ``total`` plus the products of :meth:`left` and :func:`parts_of` vectors of B.

        One vector of B instead of two means that the words' other numbers are zeros.
        """
        if self.way == "vnni":
            # As assembly: the arguments of LLVM's intrinsic changed with each of its last versions.
            text = "vpdpbusd $3, $2, $0" if self.lanes == 16 else "{vex} vpdpbusd $3, $2, $0"
            kind = ir.FunctionType(self.kind, [self.kind] * 3)
            place = "v" if self.lanes == 16 else "x"
            constraints = f"={place},0,{place},{place}"
            return builder.asm(kind, text, constraints, [total, *a, *b], side_effect=False)
        for pair in zip(a, b, strict=False):
            if self.way == "plain":
                words = [builder.bitcast(one, self.kind) for one in pair]
                lower = [builder.ashr(builder.shl(w, self._all(16)), self._all(16)) for w in words]
                upper = [builder.ashr(w, self._all(16)) for w in words]
                products = builder.add(builder.mul(*lower), builder.mul(*upper))
            else:
                name = "avx512.pmaddw.d.512" if self.lanes == 16 else "avx2.pmadd.wd"
                shorts = [builder.bitcast(one, self._shorts) for one in pair]
                products = called(builder, f"llvm.x86.{name}", self.kind, *shorts)
            total = builder.add(total, products)
        return total

    def _all(self, value: int) -> ir.Constant:
        return ir.Constant(self.kind, [value] * self.lanes)
