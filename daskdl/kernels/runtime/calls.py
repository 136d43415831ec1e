"""Calls of compiled kernels by their address, with arguments that were laid out beforehand.

To run its part of a kernel's work, another thread needs three addresses and a range. The code that
lays out arguments depends only on their types; it is compiled once for all kernels with such
arguments.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from daskdl.compat.numba_compiler import cgutils, excinfo_ptr_t
from daskdl.kernels.runtime.llvm import BYTE, I32, I64

#: Type of functions from :func:`lay_out`: (kernel, arguments, which, start, stop) to a status.
_CALL = ir.FunctionType(I32, [I64] * 5)


@intrinsic
def lay_out(context, rows, whole, unit):
    """Return two addresses, int64: of a function that calls kernels, and of the arguments.

    They are valid until the calling function returns. The function calls a kernel with parts of
    ``rows``, a tuple of arrays or None, along their first axis, and with all of ``whole``, a tuple:

    - if there are any rows, ``kernel(*parts, *whole)``; a part goes from ``start * unit`` to
      ``stop * unit``, or to the end;
    - otherwise ``kernel(*whole, which, start, stop)``.
    """
    signature = types.UniTuple(types.int64, 2)(rows, whole, types.int64)
    return signature, _generate_layout


def _generate_layout(context, builder, signature, args):
    kinds = [context.get_value_type(kind) for kind in signature.args]
    room = cgutils.alloca_once(builder, ir.LiteralStructType(kinds))
    for i, value in enumerate(args):
        builder.store(value, cgutils.gep_inbounds(builder, room, 0, i))
    name = builder.module.get_unique_name("daskdl_call")
    function = ir.Function(builder.module, _CALL, name=name)
    function.linkage = "internal"
    inner = ir.IRBuilder(function.append_basic_block("entry"))
    _generate_call(context, inner, signature.args, function.args, room.type)
    addresses = [builder.ptrtoint(function, I64), builder.ptrtoint(room, I64)]
    return cgutils.pack_array(builder, addresses)


def _generate_call(context, builder, kinds, args, room_type):
    kernel, data, which, start, stop = args
    rows, whole, unit = (
        builder.extract_value(builder.load(builder.inttoptr(data, room_type)), i) for i in range(3)
    )
    types_of, values = [*kinds[0].types, *kinds[1].types], []
    ends = builder.mul(start, unit), builder.mul(stop, unit)
    for i, kind in enumerate(kinds[0].types):
        value = builder.extract_value(rows, i)
        array = isinstance(kind, types.Array)
        values.append(_part(context, builder, kind, value, *ends) if array else value)
    values += [builder.extract_value(whole, i) for i in range(len(kinds[1].types))]
    if not kinds[0].types:
        types_of += [types.int64] * 3
        values += [which, start, stop]
    pointer = context.call_conv.get_function_type(types.none, types_of).as_pointer()
    result = cgutils.alloca_once(builder, BYTE, zfill=True)
    error = cgutils.alloca_once(builder, excinfo_ptr_t, zfill=True)
    flat = context.get_arg_packer(types_of).as_arguments(builder, values)
    builder.ret(builder.call(builder.inttoptr(kernel, pointer), [result, error, *flat]))


def _part(context, builder, kind, value, first, last):
    """Generate ``value[first:last]``."""
    array = context.make_array(kind)(context, builder, value)
    lengths = cgutils.unpack_tuple(builder, array.shape)
    steps = cgutils.unpack_tuple(builder, array.strides)
    first, last = (
        builder.select(builder.icmp_signed("<", end, lengths[0]), end, lengths[0])
        for end in (first, last)
    )
    lengths[0] = builder.sub(last, first)
    offset = builder.mul(first, steps[0])
    array.data = cgutils.pointer_add(builder, array.data, offset, return_type=array.data.type)
    array.shape = cgutils.pack_array(builder, lengths)
    number = lengths[0]
    for length in lengths[1:]:
        number = builder.mul(number, length)
    array.nitems = number
    return array._getvalue()


@intrinsic
def call(context, function, kernel, arguments, which, start, stop):
    """Call a kernel with the addresses from :func:`lay_out`; return 0 if it succeeded."""

    def generate(context, builder, signature, args):
        return builder.call(builder.inttoptr(args[0], _CALL.as_pointer()), args[1:])

    return types.int32(*[types.int64] * 6), generate


@intrinsic
def run(context, body, function, kernel, arguments, slots, count, n_parts, n_items):
    """Call a compiled function of seven int64 by its address; return its result, int64.

    Unlike in an ordinary call, its code is neither inlined nor compiled again with the caller.
    """

    def generate(context, builder, signature, args):
        pointer = context.call_conv.get_function_type(types.int64, [types.int64] * 7).as_pointer()
        result = cgutils.alloca_once(builder, I64, zfill=True)
        error = cgutils.alloca_once(builder, excinfo_ptr_t, zfill=True)
        builder.call(builder.inttoptr(args[0], pointer), [result, error, *args[1:]])
        return builder.load(result)

    return types.int64(*[types.int64] * 8), generate


_addresses: dict[Any, int] = {}


def address_of(kernel: Any, rows: tuple[Any, ...], whole: tuple[Any, ...]) -> int:
    """Return the address of a kernel's code for such arguments; compile it if necessary."""
    key = kernel, len(rows), *map(_kind, rows), *map(_kind, whole)
    address = _addresses.get(key)
    if address is None:
        signature = tuple(numba.typeof(value) for value in (*rows, *whole))
        if not rows:
            signature += (types.int64,) * 3
        kernel.compile(signature)
        compiled = kernel.overloads[signature]
        name = compiled.fndesc.llvm_func_name
        address = _addresses[key] = compiled.library.get_pointer_to_function(name)
    return address


def _kind(value: Any) -> Any:
    """Return a key that differs if numba's types of two values differ."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.ndim, value.flags.num
    if isinstance(value, tuple):
        return type(value), *map(_kind, value)
    return type(value)
