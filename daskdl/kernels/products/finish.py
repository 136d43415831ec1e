"""Add bias and residual sum to a product's sums, and limit them, before they are written.

``min(max(sum + bias + residual, low), high)``: a ReLU has the limits 0 and infinity; without limits
they are the infinities. In one pass with the last sums this costs next to nothing; each pass over
memory of its own would take as long as the products of a small convolution.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numpy.typing import NDArray

from daskdl.compat.numba_core import cgutils
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.team import over_rows

Array = NDArray[Any]

_I64, _I32 = ir.IntType(64), ir.IntType(32)
_BYTE = ir.IntType(8).as_pointer()
#: Rows that a part of a pass of its own has at least.
_LEAST = 64


class Finish(NamedTuple):
    """The end of a convolution in inference.

    Attributes: bias (filters and the rest of the last panel,); residual, of the result's shape,
    which is added, where the result itself stands for nothing; limits (2,): what is below the first
    or above the second becomes that.
    """

    bias: Array
    residual: Array
    limits: Array


#: Types of numba, behind those of a product: addresses of the bias and of the residual
#: as bytes from there (0: nothing is), and both limits.
def kinds(like: Any) -> tuple[Any, ...]:
    """Return the types of the arguments that :func:`write_finished` takes."""
    number = types.float32 if like.dtype == types.uint32 else like.dtype
    return types.intp, types.intp, number, number


def added_if(builder: ir.IRBuilder, add: Any, totals: list[Any], places: list[Any]) -> list[Any]:
    """Generate vectors of sums with what is at some places, where ``add`` says so."""
    kind, nothing = totals[0].type, _zeros(builder, totals[0].type)
    return [
        builder.fadd(total, _load(builder, builder.select(add, place, nothing), kind))
        for total, place in zip(totals, places, strict=True)
    ]


def changed_if(
    builder: ir.IRBuilder, condition: Any, values: list[Any], change: Callable[[list[Any]], Any]
) -> list[Any]:
    """Generate vectors that are changed where a condition holds."""
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


def write_finished(
    builder: ir.IRBuilder,
    totals: list[Any],
    places: list[Any],
    ends: Any,
    columns: Any = None,
    width: int = 0,
) -> None:
    """Generate the end of some vectors of sums, and their stores.

    All are read before one is written: a row may stand there twice. Places are (byte pointer of the
    target, bytes behind the bias' address), ``ends`` LLVM values of :func:`kinds`. ``columns`` are
    those of a row, where there are not whole vectors of them; the vectors are then of rows, one or
    two each, of ``width`` bytes.
    """
    bias, residual, low, high = ends
    kind = totals[0].type
    lonely = builder.icmp_signed("==", residual, ir.Constant(_I64, 0))
    least, most = (all_lanes(builder, kind, limit) for limit in (low, high))
    shift, nothing = builder.inttoptr(bias, _BYTE), _zeros(builder, kind)
    masks: dict[int, Any] = {}
    for _, behind in places if columns is not None else ():
        if behind.constant not in masks:
            first = behind.constant // width * kind.count
            masks[behind.constant] = _mask(builder, kind.count, first, columns)
    values = []
    for total, (place, behind) in zip(totals, places, strict=True):
        other = builder.select(lonely, nothing, builder.gep(place, [residual]))
        mask = None if columns is None else masks[behind.constant]
        value = builder.fadd(total, _load(builder, builder.gep(shift, [behind]), kind))
        value = builder.fadd(value, _load(builder, other, kind, mask))
        # NaN is neither below nor above.
        value = builder.select(builder.fcmp_ordered("<", value, least), least, value)
        values.append(builder.select(builder.fcmp_ordered(">", value, most), most, value))
    for value, (place, behind) in zip(values, places, strict=True):
        to = builder.bitcast(place, kind.as_pointer())
        if columns is None:
            builder.store(value, to).align = _size(kind)
        else:
            arguments = value, to, ir.Constant(_I32, _size(kind)), masks[behind.constant]
            _masked(builder, "store", kind, ir.VoidType(), arguments)


def _size(kind: Any) -> int:
    return 4 if isinstance(kind.element, ir.FloatType) else 8


def _zeros(builder: ir.IRBuilder, kind: Any) -> Any:
    zeros = ir.Constant(kind, [0.0] * kind.count)
    return builder.bitcast(cgutils.alloca_once_value(builder, zeros), _BYTE)


def _mask(builder: ir.IRBuilder, lanes: int, first: int, columns: Any) -> Any:
    """Generate which lanes are of columns that there are; the first lane is of ``first``."""
    kind = ir.VectorType(_I32, lanes)
    left = all_lanes(builder, kind, builder.trunc(columns, _I32))
    numbers = ir.Constant(kind, list(range(first, first + lanes)))
    return builder.icmp_signed("<", numbers, left)


def _masked(builder: ir.IRBuilder, what: str, kind: Any, result: Any, arguments: Any) -> Any:
    """Generate a load or a store of some lanes; nothing else is touched."""
    short = f"v{kind.count}f{8 * _size(kind)}"
    function = ir.FunctionType(result, [argument.type for argument in arguments])
    name = f"llvm.masked.{what}.{short}.p0{short}"
    return builder.call(cgutils.get_or_insert_function(builder.module, function, name), arguments)


def _load(builder: ir.IRBuilder, place: Any, kind: Any, mask: Any = None) -> Any:
    place = builder.bitcast(place, kind.as_pointer())
    if mask is not None:
        zeros = ir.Constant(kind, [0.0] * kind.count)
        arguments = place, ir.Constant(_I32, _size(kind)), mask, zeros
        return _masked(builder, "load", kind, kind, arguments)
    value = builder.load(place)
    value.align = _size(kind)
    return value


def all_lanes(builder: ir.IRBuilder, kind: Any, number: Any) -> Any:
    """Generate a vector that has a number in all lanes."""
    undefined = ir.Constant(kind, ir.Undefined)
    one = builder.insert_element(undefined, number, ir.Constant(_I32, 0))
    mask = ir.Constant(ir.VectorType(_I32, kind.count), [0] * kind.count)
    return builder.shuffle_vector(one, undefined, mask)


@jit
def limited(value, low, high):
    """Return a number within limits; NaN stays."""
    value = low if value < low else value
    return high if value > high else value


@jit
def _finish(y, residual, bias, limits):
    low, high = limits[0], limits[1]
    for r in range(y.shape[0]):
        for c in range(y.shape[1]):
            value = y[r, c] + bias[c]
            if residual is not None:
                value += residual[r, c]
            y[r, c] = limited(value, low, high)


def finish(y: Array, ends: Finish) -> None:
    """Finish sums (..., filters) in place, in a pass of its own."""
    filters = y.shape[-1]
    rows = y.reshape(-1, filters)
    residual = None if ends.residual is y else ends.residual.reshape(-1, filters)
    over_rows(_finish, (rows, residual), _LEAST, ends.bias, ends.limits)


def ends_of(
    y: Array, bias: Array, residual: Array | None = None, low: float = -np.inf, high: float = np.inf
) -> Finish:
    """Return the end of sums that are written to ``y``."""
    return Finish(bias, y if residual is None else residual, np.array((low, high), y.dtype))
