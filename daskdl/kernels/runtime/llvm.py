"""Parts of kernels in LLVM's intermediate code: vectors, their loads and stores, calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from daskdl.compat.numba_compiler import cgutils

I8, I32, I64, FLOAT = ir.IntType(8), ir.IntType(32), ir.IntType(64), ir.FloatType()
BYTE = I8.as_pointer()


def whole(value: int) -> ir.Constant:
    """Return an int64 constant of LLVM."""
    return ir.Constant(I64, value)


def size_of(number: ir.Type) -> int:
    """Return the bytes of an LLVM number."""
    return {ir.FloatType(): 4, ir.DoubleType(): 8}.get(number) or number.width // 8


def called(builder: ir.IRBuilder, name: str, result: Any, *arguments: Any) -> Any:
    """Generate a call of an LLVM intrinsic."""
    kind = ir.FunctionType(result, [value.type for value in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)


def fma(builder: ir.IRBuilder, a: Any, b: Any, c: Any) -> Any:
    """Generate ``a * b + c`` of float32 vectors, rounded once."""
    return called(builder, f"llvm.fma.v{c.type.count}f32", c.type, a, b, c)


def load(
    builder: ir.IRBuilder, base: Any, offset: int, kind: ir.Type, align: int, mask: Any = None
) -> Any:
    """Load a value ``offset`` bytes after a byte pointer; lanes outside the mask are zero."""
    place = _behind(builder, base, offset, kind)
    if mask is not None:
        nothing = ir.Constant(kind, None)
        return _masked(builder, "load", kind, kind, place, ir.Constant(I32, align), mask, nothing)
    value = builder.load(place)
    value.align = align
    return value


def store(
    builder: ir.IRBuilder, value: Any, base: Any, offset: int, align: int, mask: Any = None
) -> None:
    """Store a value, or its lanes in a mask, ``offset`` bytes after a byte pointer."""
    place = _behind(builder, base, offset, value.type)
    if mask is None:
        builder.store(value, place).align = align
    else:
        arguments = value, place, ir.Constant(I32, align), mask
        _masked(builder, "store", value.type, ir.VoidType(), *arguments)


def _behind(builder: ir.IRBuilder, base: Any, offset: int, kind: ir.Type) -> Any:
    place = builder.gep(base, [whole(offset)]) if offset else base
    return builder.bitcast(place, kind.as_pointer())


def _masked(builder: ir.IRBuilder, operation: str, kind: Any, result: Any, *arguments: Any) -> Any:
    letter = "i" if isinstance(kind.element, ir.IntType) else "f"
    name = f"v{kind.count}{letter}{8 * size_of(kind.element)}"
    return called(builder, f"llvm.masked.{operation}.{name}.p0{name}", result, *arguments)


def lanes_below(builder: ir.IRBuilder, lanes: int, end: Any, first: int = 0) -> Any:
    """Generate a mask of the lanes below an int64 end; lanes are numbered from ``first``."""
    kind = ir.VectorType(I32, lanes)
    numbers = ir.Constant(kind, list(range(first, first + lanes)))
    return builder.icmp_signed("<", numbers, all_lanes(builder, kind, builder.trunc(end, I32)))


def all_lanes(builder: ir.IRBuilder, kind: Any, number: Any) -> Any:
    """Generate a vector with one number in all lanes."""
    undefined = ir.Constant(kind, ir.Undefined)
    one = builder.insert_element(undefined, number, ir.Constant(I32, 0))
    mask = ir.Constant(ir.VectorType(I32, kind.count), [0] * kind.count)
    return builder.shuffle_vector(one, undefined, mask)


def changed_if(
    builder: ir.IRBuilder, condition: Any, values: list[Any], change: Callable[[list[Any]], Any]
) -> list[Any]:
    """Generate code that changes vectors if a condition holds."""
    before, then = builder.block, builder.append_basic_block("then")
    after = builder.append_basic_block("after")
    builder.cbranch(condition, then, after)
    builder.position_at_end(then)
    changed, end = change(values), builder.block
    builder.branch(after)
    builder.position_at_end(after)
    results = []
    for old, new in zip(values, changed, strict=True):
        phi = builder.phi(old.type)
        phi.add_incoming(old, before)
        phi.add_incoming(new, end)
        results.append(phi)
    return results


def repeated(
    builder: ir.IRBuilder, count: Any, starts: list[Any], turn: Callable[..., list[Any]]
) -> list[Any]:
    """Generate ``count`` turns, at least one, and return the values after the last.

    ``starts`` are the values before the first; ``turn(k, *values)`` generates the turn with the
    number ``k``, int64, and returns the values after it.
    """
    before, inside = builder.block, builder.append_basic_block("turn")
    after = builder.append_basic_block("after")
    builder.branch(inside)
    builder.position_at_end(inside)
    phis = [builder.phi(start.type) for start in (whole(0), *starts)]
    values = turn(*phis)
    following = builder.add(phis[0], whole(1))
    for phi, start, value in zip(phis, (whole(0), *starts), (following, *values), strict=True):
        phi.add_incoming(start, before)
        phi.add_incoming(value, builder.block)
    builder.cbranch(builder.icmp_signed("<", following, count), inside, after)
    builder.position_at_end(after)
    return values


def fetch_line(builder: ir.IRBuilder, place: Any, near: int = 2) -> None:
    """Generate a prefetch of the line at a byte pointer into L2, or into L1 if ``near`` is 3."""
    hint = [ir.Constant(I32, value) for value in (0, near, 1)]  # read, where to, data
    called(builder, "llvm.prefetch.p0i8", ir.VoidType(), place, *hint)
