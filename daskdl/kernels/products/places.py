"""Single numbers at addresses."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from daskdl.kernels.products.microkernel import load, store

_BYTE = ir.IntType(8).as_pointer()


@intrinsic
def number(context, like, place):
    """Return the number of an array's dtype at an address."""
    kind = like.dtype

    def generate(context, builder, signature, args):
        base = builder.inttoptr(args[1], _BYTE)
        return load(builder, base, 0, context.get_data_type(kind), kind.bitwidth // 8)

    return kind(like, types.intp), generate


@intrinsic
def put_number(context, like, place, value):
    """Write a number of an array's dtype to an address."""
    kind = like.dtype

    def generate(context, builder, signature, args):
        store(builder, args[2], builder.inttoptr(args[1], _BYTE), 0, kind.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(like, types.intp, kind), generate
