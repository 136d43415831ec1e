"""Products of four bytes at a time, added to int32 sums: the same integers on all processors.

A word is 32 bits: four unsigned numbers of A, or four signed ones of B, summands one after the
other. VPDPBUSD of AVX512_VNNI and AVX_VNNI adds up the four products (Intel, Software Developer's
Manual, volume 2). Without it bytes are widened to 16 bits and multiplied by VPMADDWD: the 8-bit
instruction of AVX2, VPMADDUBSW, cuts sums off at 16 bits, and is of no use here.
"""

from __future__ import annotations

import platform
from typing import Any

import llvmlite.binding
from llvmlite import ir

from daskdl.compat.numba_compiler import features
from daskdl.compat.numba_core import cgutils

#: Ways to multiply: by VPDPBUSD; by 16-bit pairs; by 32-bit numbers, on other processors.
WAYS = ("vnni", "pairs", "plain")

# Here, not where assembly is generated: what calls it may be compiled in a process that has taken
# the assembly itself from the cache.
llvmlite.binding.initialize_native_asmparser()


def way_of(lanes: int) -> str:
    """Return the quickest of :data:`WAYS` for vectors of so many words."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return "plain"
    needed = "avx512vnni" if lanes == 16 else "avxvnni"
    return "vnni" if needed in features() else "pairs"


class Words:
    """Generates products of vectors of words, of ``lanes`` words each.

    Parameters
    ----------
    way : one of :data:`WAYS`
    lanes : int
        16 or 8.
    """

    def __init__(self, way: str, lanes: int) -> None:
        self.way, self.lanes = way, lanes
        self.kind = ir.VectorType(ir.IntType(32), lanes)
        self._shorts = ir.VectorType(ir.IntType(16), 2 * lanes)

    def left(self, builder: ir.IRBuilder, a: Any) -> Any:
        """Generate what :meth:`add` wants of words of A, once for all products with them."""
        if self.way == "vnni":
            return a
        if self.way == "plain":
            mask = self._all(0xFF)
            shifted = [builder.lshr(a, self._all(8 * i)) for i in range(4)]
            return [builder.and_(x, mask) for x in shifted]
        return [builder.and_(a, self._all(0x00FF00FF)), builder.and_(
            builder.lshr(a, self._all(8)), self._all(0x00FF00FF)
        )]  # fmt: skip

    def right(self, builder: ir.IRBuilder, b: Any) -> Any:
        """Generate what :meth:`add` wants of words of B, once for all products with them."""
        if self.way == "vnni":
            return b
        if self.way == "plain":
            shifted = [builder.shl(b, self._all(24 - 8 * i)) for i in range(4)]
            return [builder.ashr(x, self._all(24)) for x in shifted]
        shorts = builder.bitcast(b, self._shorts)
        eight = ir.Constant(self._shorts, [8] * 2 * self.lanes)
        return [builder.ashr(builder.shl(shorts, eight), eight), builder.ashr(shorts, eight)]

    def add(self, builder: ir.IRBuilder, total: Any, a: Any, b: Any) -> Any:
        """Generate ``total`` with the products of :meth:`left` and :meth:`right`."""
        if self.way == "vnni":
            # By name: LLVM's intrinsic has had other arguments in each of its last versions.
            text = "vpdpbusd $3, $2, $0" if self.lanes == 16 else "{vex} vpdpbusd $3, $2, $0"
            kind = ir.FunctionType(self.kind, [self.kind] * 3)
            place = "v" if self.lanes == 16 else "x"
            constraints = f"={place},0,{place},{place}"
            return builder.asm(kind, text, constraints, [total, a, b], side_effect=False)
        if self.way == "plain":
            for one, other in zip(a, b, strict=True):
                total = builder.add(total, builder.mul(one, other))
            return total
        name = "llvm.x86.avx512.pmaddw.d.512" if self.lanes == 16 else "llvm.x86.avx2.pmadd.wd"
        kind = ir.FunctionType(self.kind, [self._shorts] * 2)
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        for one, other in zip(a, b, strict=True):
            pair = [builder.bitcast(one, self._shorts), other]
            total = builder.add(total, builder.call(function, pair))
        return total

    def _all(self, value: int) -> ir.Constant:
        return ir.Constant(self.kind, [value] * self.lanes)
