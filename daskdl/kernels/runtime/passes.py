"""One pass over arrays, element by element: shared out to threads, into new aligned memory.

Of large arrays past the caches: an ordinary store first reads the line that it is going to fill, so
that a pass moves a third more bytes than it has to, and drives out of the caches what is needed
next.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from daskdl.kernels.runtime import grain
from daskdl.kernels.runtime.memory import ALIGNMENT, empty
from daskdl.kernels.runtime.team import over_rows

Array = NDArray[Any]

#: Bytes of a vector register with AVX2.
VECTOR = 32

#: Bytes from which results go past the caches. They would still find room in the last one, but push
#: out of it what they are made from, which the next pass reads again.
PAST = 1 << 22

#: Elements of which threads take whole numbers, so that their parts of aligned memory are aligned.
UNIT = 1024

#: Units that a part has at least.
LEAST_UNITS = grain.STREAM // UNIT


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


def flat(array: Array, dtype: Any = None) -> Array:
    """Return all elements as a read-only C-contiguous vector; a view where that is possible.

    Read-only, so that a kernel is compiled once and not again for arrays that Dask made read-only.
    """
    vector = np.asarray(array, dtype, order="C").reshape(-1)
    if not vector.flags.aligned:
        vector = vector.copy()
    vector.setflags(write=False)
    return vector


def one_pass(kernel: Any, *inputs: Array, settings: Any = None, results: int = 1) -> list[Array]:
    """Return new arrays that ``kernel(*inputs, *results, settings, past)`` fills.

    The kernel is a numba function of vectors; what its results get at ``k`` depends on its inputs
    at ``k`` alone. It stores by :func:`~daskdl.kernels.runtime.passes.put` and ends with
    :func:`~daskdl.kernels.runtime.passes.drain`. Inputs have one shape and dtype, which is
    that of the vector of settings.
    """
    first = inputs[0]
    vectors = [flat(a, first.dtype) for a in inputs]
    new = [empty(first.size, first.dtype) for _ in range(results)]
    past = True if first.nbytes * results >= PAST and streams(*new) else None

    over_rows(kernel, (*vectors, *new), LEAST_UNITS, settings, past, unit=UNIT)
    return [v.reshape(first.shape) for v in new]
