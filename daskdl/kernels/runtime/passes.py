"""One pass over arrays, element by element: shared out to threads, into new aligned memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime import grain
from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.runtime.nontemporal import PAST, streams
from daskdl.kernels.runtime.team import over_rows

Array = NDArray[Any]

#: Elements of which threads take whole numbers, so that their parts of aligned memory are aligned.
UNIT = 1024

#: Units that a part has at least.
LEAST_UNITS = grain.STREAM // UNIT


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
    at ``k`` alone. It stores by :func:`~daskdl.kernels.runtime.nontemporal.put` and ends with
    :func:`~daskdl.kernels.runtime.nontemporal.drain`. Inputs have one shape and dtype, which is
    that of the vector of settings.
    """
    first = inputs[0]
    vectors = [flat(a, first.dtype) for a in inputs]
    new = [empty(first.size, first.dtype) for _ in range(results)]
    past = True if first.nbytes * results >= PAST and streams(*new) else None

    over_rows(kernel, (*vectors, *new), LEAST_UNITS, settings, past, unit=UNIT)
    return [v.reshape(first.shape) for v in new]
