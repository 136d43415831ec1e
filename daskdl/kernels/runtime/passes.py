"""One pass over arrays, element by element, by several threads, into new aligned memory.

Large results bypass the caches. An ordinary store first reads the line that it fills: the pass
would move a third more bytes than needed, and evict data that the next pass needs.
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

#: Bytes from which results bypass the caches. They would still fit the last one, but evict the
#: inputs, which the next pass reads again.
PAST = 1 << 22

#: Threads take multiples of this number of elements, so that parts of aligned memory are aligned.
UNIT = 1024

#: Least units of a part.
LEAST_UNITS = grain.STREAM // UNIT


def streams(*results: np.ndarray[Any, Any]) -> bool:
    """Return whether results bypass the caches: together they are large, and all are aligned."""
    return sum(r.nbytes for r in results) >= PAST and not any(
        r.ctypes.data % ALIGNMENT for r in results
    )


@intrinsic
def put(typing_context, array, k, value, past):
    """Do ``array[k] = value`` inside a numba function; bypass the caches if ``past`` is not None.

    Use it in a plain loop over ``k`` from 0, for vectors that :func:`streams` found aligned; call
    :func:`drain` at the function's end. ``past`` is None or True: numba's type decides, so that
    both loops are compiled from one source.
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
    """Do :func:`put` into ``new``; if ``new`` is None, do ``old[k] = value``.

    ``old`` may be a read-only array. A loop has to read its values at ``k`` before this.
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
    # LLVM vectorises stores past the caches only if it may assume alignment. The vectors of a loop
    # from 0 over an aligned array are aligned; the rest at its end is stored one by one, which no
    # processor requires to be aligned.
    align = kind.dtype.bitwidth // 8 if near else VECTOR
    store = builder.store(value, builder.gep(data, [k]), align=align)
    if not near:
        one = ir.Constant(ir.IntType(32), 1)
        store.set_metadata("nontemporal", builder.module.add_metadata([one]))


@intrinsic
def drain(typing_context, past):
    """Wait, inside a numba function, until all threads can read what :func:`put` wrote."""

    def generate(context, builder, signature, arguments):
        if not isinstance(past, types.NoneType):
            builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(past), generate


def flat(array: Array, dtype: Any = None) -> Array:
    """Return all elements as a read-only C-contiguous vector, a view if possible.

    All are read-only, so that a kernel is not compiled again for arrays that Dask made read-only.
    """
    vector = np.asarray(array, dtype, order="C").reshape(-1)
    if not vector.flags.aligned:
        vector = vector.copy()
    vector.setflags(write=False)
    return vector


def one_pass(kernel: Any, *inputs: Array, settings: Any = None, results: int = 1) -> list[Array]:
    """Return new arrays that ``kernel(*inputs, *results, settings, past)`` fills.

    The kernel is a numba function of vectors; its results at ``k`` depend only on its inputs at
    ``k``. It stores with :func:`~daskdl.kernels.runtime.passes.put` and ends with
    :func:`~daskdl.kernels.runtime.passes.drain`. Inputs have one shape; they and the vector of
    settings have one dtype.
    """
    first = inputs[0]
    vectors = [flat(a, first.dtype) for a in inputs]
    new = [empty(first.size, first.dtype) for _ in range(results)]
    past = True if first.nbytes * results >= PAST and streams(*new) else None

    over_rows(kernel, (*vectors, *new), LEAST_UNITS, settings, past, unit=UNIT)
    return [v.reshape(first.shape) for v in new]
