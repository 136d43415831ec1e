"""Stores inside numba functions that write past the caches.

An ordinary store first reads the line that it is going to fill: a pass that writes new large arrays
moves a third more bytes than it has to, and drives out of the caches what is needed next.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from daskdl.kernels.runtime.memory import ALIGNMENT

#: Bytes of a vector register with AVX2.
VECTOR = 32

#: Bytes from which results go past the caches. They would still find room in the last one, but push
#: out of it what they are made from, which the next pass reads again.
PAST = 1 << 22


def streams(*results: np.ndarray[Any, Any]) -> bool:
    """Return whether to write these past the caches: together they are large, and all aligned."""
    return sum(r.nbytes for r in results) >= PAST and not any(
        r.ctypes.data % ALIGNMENT for r in results
    )


@intrinsic
def put(typing_context, array, k, value, past):
    """Do ``array[k] = value`` inside a numba function; if ``past`` is not None, past the caches.

    For vectors that :func:`streams` found aligned, in a plain loop over ``k`` from 0; the function
    has to call :func:`drain` at its end. ``past`` is None or True: it is numba's type that decides,
    so that both loops are compiled from one source.
    """
    signature = types.void(array, types.intp, array.dtype, past)

    def generate(context, builder, signature, arguments):
        near = isinstance(past, types.NoneType)
        to, k, value, _ = arguments
        _store(context, builder, array, to, k, value, near)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def renew(typing_context, old, new, k, value, past):
    """Do :func:`put` into ``new``; if that is None, ``old[k] = value``.

    ``old`` may be read-only to all else. What a loop reads at ``k`` it has to read before.
    """
    over = isinstance(new, types.NoneType)
    signature = types.void(old, new, types.intp, old.dtype, past)

    def generate(context, builder, signature, arguments):
        near = over or isinstance(past, types.NoneType)
        old_one, new_one, k, value, _ = arguments
        kind, to = (old, old_one) if over else (new, new_one)
        _store(context, builder, kind, to, k, value, near)
        return context.get_dummy_value()

    return signature, generate


def _store(context, builder, kind, array, k, value, near) -> None:
    data = context.make_array(kind)(context, builder, array).data
    # LLVM joins stores past the caches to vectors only where it may take them for aligned. The
    # vectors of a loop from 0 over an aligned array are; what is left at its end is stored one by
    # one, for which no processor asks for alignment.
    align = kind.dtype.bitwidth // 8 if near else VECTOR
    store = builder.store(value, builder.gep(data, [k]), align=align)
    if not near:
        one = ir.Constant(ir.IntType(32), 1)
        store.set_metadata("nontemporal", builder.module.add_metadata([one]))


@intrinsic
def drain(typing_context, past):
    """Wait, inside a numba function, until what :func:`put` wrote can be read by all threads."""

    def generate(context, builder, signature, arguments):
        if not isinstance(past, types.NoneType):
            builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(past), generate
