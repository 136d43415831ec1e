"""Products of pairs of bfloat16 numbers, added to float32 sums: the same bits on all processors.

A pair has 32 bits; the first number in memory is the lower half. A sum adds the upper
halves' product first, then the lower halves', each by a fused multiply-add that rounds to the
nearest, ties to even. Denormals count as zeros, before and after. The instruction VDPBF16PS of
AVX512_BF16 does this (Intel, Software Developer's Manual, volume 2); without it, float32 arithmetic
does the same.
"""

from __future__ import annotations

import platform
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from daskdl.compat.numba_compiler import cgutils, features
from daskdl.kernels.runtime.llvm import (
    BYTE,
    FLOAT,
    I32,
    called,
    fetch_line,
    fma,
    lanes_below,
    load,
    store,
    whole,
)

_UPPER = 0xFFFF0000
#: Bits of the control register of SSE and AVX: flush to zero, denormals are zeros.
_FLUSH = 0x8040

#: Ways to multiply: by the instruction; by float32 arithmetic, where the control register or
#: comparisons turn denormals into zeros.
ARITHMETICS = ("instruction", "control", "compared")


def arithmetic() -> str:
    """Return the fastest of :data:`ARITHMETICS` that the processor has."""
    if "avx512bf16" in features():
        return "instruction"
    return "control" if platform.machine().lower() in ("x86_64", "amd64") else "compared"


class Pairs:
    """Generates products of vectors of ``lanes`` pairs, 16 for the instruction."""

    def __init__(self, way: str, lanes: int) -> None:
        self.way = way
        self.sums = ir.VectorType(FLOAT, lanes)
        self.words = ir.VectorType(I32, lanes)

    def begin(self, builder: ir.IRBuilder) -> Any:
        """Generate the code before the first product; return the argument of :meth:`end`."""
        if self.way != "control":
            return None
        before, inside = (cgutils.alloca_once(builder, I32) for _ in range(2))
        self._control(builder, "stmxcsr", before)
        builder.store(builder.or_(builder.load(before), ir.Constant(I32, _FLUSH)), inside)
        self._control(builder, "ldmxcsr", inside)
        return before

    def end(self, builder: ir.IRBuilder, before: Any) -> None:
        """Generate the code after the last product."""
        if self.way == "control":
            self._control(builder, "ldmxcsr", before)

    def _control(self, builder: ir.IRBuilder, instruction: str, place: Any) -> None:
        called(builder, f"llvm.x86.sse.{instruction}", ir.VoidType(), builder.bitcast(place, BYTE))

    def add_product(self, builder: ir.IRBuilder, total: Any, a: Any, b: Any) -> Any:
        """Generate ``total`` plus the products of pairs of ``a`` and ``b``, vectors of words."""
        if self.way == "instruction":
            return called(builder, "llvm.x86.avx512bf16.dpbf16ps.512", self.sums, total, a, b)
        total = self.flushed(builder, total)
        for half in (self.upper, self.lower):
            left, right = (self.flushed(builder, half(builder, x)) for x in (a, b))
            total = self.flushed(builder, fma(builder, left, right, total))
        return total

    def upper(self, builder: ir.IRBuilder, words: Any) -> Any:
        """Generate the numbers of the upper halves, as float32."""
        return builder.bitcast(builder.and_(words, self._all(_UPPER)), self.sums)

    def lower(self, builder: ir.IRBuilder, words: Any) -> Any:
        """Generate the numbers of the lower halves, as float32."""
        return builder.bitcast(builder.shl(words, self._all(16)), self.sums)

    def flushed(self, builder: ir.IRBuilder, x: Any) -> Any:
        """Generate x with zeros for denormals, unless the processor makes them zeros."""
        if self.way == "control":
            return x
        bits = builder.bitcast(x, self.words)
        size = builder.and_(bits, self._all(0x7FFFFFFF))
        tiny = builder.icmp_unsigned("<", size, self._all(0x00800000))
        zero = builder.and_(bits, self._all(0x80000000))
        return builder.bitcast(builder.select(tiny, zero, bits), self.sums)

    def _all(self, value: int) -> ir.Constant:
        return ir.Constant(self.words, [value] * self.words.count)


#: Most numbers in a call of :func:`round_numbers`.
ROUNDED = 16
#: Bytes by which prefetches are ahead of the numbers that are rounded.
AHEAD = 2048


@intrinsic
def round_numbers(context, source, target, count, width):
    """Round ``count`` float32 numbers from an address to another, with zeros up to ``width``.

    Each becomes its upper 16 bits, to the nearest, ties to even; denormals become zeros. With
    AVX512_BF16, this is VCVTNEPS2BF16.
    """

    def generate(context, builder, signature, args):
        result = rounded_numbers(builder, True, args[0], args[2])
        some = lanes_below(builder, ROUNDED, args[3])
        store(builder, result, builder.inttoptr(args[1], BYTE), 0, 2, some)
        return context.get_dummy_value()

    return types.void(*[types.intp] * 4), generate


def rounded_numbers(builder: ir.IRBuilder, floats: bool, place: Any, count: Any) -> Any:
    """Generate ``ROUNDED`` bfloat16 numbers: the first ``count`` at an address, then zeros.

    Numbers at the address are float32, which is rounded, or bfloat16. The address 0 stands for
    zeros; nothing is read there.
    """
    numbers, words = (ir.VectorType(kind, ROUNDED) for kind in (FLOAT, I32))
    short = ir.VectorType(ir.IntType(16), ROUNDED)
    nowhere = builder.icmp_signed("==", place, ir.Constant(place.type, 0))
    count = builder.select(nowhere, ir.Constant(count.type, 0), count)
    some, place = lanes_below(builder, ROUNDED, count), builder.inttoptr(place, BYTE)
    if not floats:
        return load(builder, place, 0, short, 2, some)
    value = load(builder, place, 0, numbers, 4, some)
    if arithmetic() != "instruction":
        return _rounded(builder, builder.bitcast(value, words), short)
    return called(builder, "llvm.x86.avx512bf16.cvtneps2bf16.512", short, value)


def round_two(builder: ir.IRBuilder, first: Any, second: Any) -> Any:
    """Generate the bfloat16 numbers of two vectors of ``ROUNDED`` float32 numbers, in order."""
    if arithmetic() == "instruction":
        both = ir.VectorType(ir.IntType(16), 2 * ROUNDED)
        return called(builder, "llvm.x86.avx512bf16.cvtne2ps2bf16.512", both, second, first)
    words, short = ir.VectorType(I32, ROUNDED), ir.VectorType(ir.IntType(16), ROUNDED)
    halves = [_rounded(builder, builder.bitcast(x, words), short) for x in (first, second)]
    lanes = ir.Constant(ir.VectorType(I32, 2 * ROUNDED), list(range(2 * ROUNDED)))
    return builder.shuffle_vector(*halves, lanes)


@intrinsic
def round_lines(context, source, target, count):
    """Round ``count`` times 32 float32 numbers at an address to bfloat16 at another."""

    def generate(context, builder, signature, args):
        source, target, count = args
        kind = ir.VectorType(FLOAT, ROUNDED)
        with cgutils.for_range(builder, count) as loop:
            offset = builder.mul(loop.index, whole(8 * ROUNDED))
            place = builder.inttoptr(builder.add(source, offset), BYTE)
            for line in (AHEAD, AHEAD + 4 * ROUNDED):
                fetch_line(builder, builder.gep(place, [whole(line)]))
            numbers = [load(builder, place, first, kind, 4) for first in (0, 4 * ROUNDED)]
            to = builder.add(target, builder.mul(loop.index, whole(4 * ROUNDED)))
            fetch_line(builder, builder.gep(builder.inttoptr(to, BYTE), [whole(AHEAD // 2)]))
            store(builder, round_two(builder, *numbers), builder.inttoptr(to, BYTE), 0, 2)
        return context.get_dummy_value()

    return types.void(*[types.intp] * 3), generate


def _rounded(builder: ir.IRBuilder, bits: Any, short: Any) -> Any:
    """Generate the arithmetic of VCVTNEPS2BF16 from integer operations."""

    def each(value: int) -> ir.Constant:
        return ir.Constant(bits.type, [value] * bits.type.count)

    cut = builder.lshr(bits, each(16))
    size = builder.and_(bits, each(0x7FFFFFFF))
    ties = builder.add(builder.and_(cut, each(1)), each(0x7FFF))
    word = builder.lshr(builder.add(bits, ties), each(16))
    nan = builder.icmp_unsigned(">", size, each(0x7F800000))
    word = builder.select(nan, builder.or_(cut, each(0x40)), word)
    tiny = builder.icmp_unsigned("<", size, each(0x00800000))
    word = builder.select(tiny, builder.and_(cut, each(0x8000)), word)
    return builder.trunc(word, short)
