"""A vector with what is beyond a bound put on it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.nontemporal import drain, put
from daskdl.kernels.runtime.passes import one_pass

Array = NDArray[Any]


def clip(x: Array, bound: float, scale: float = 1.0) -> Array:
    """Return ``scale * x`` with every number within -bound and bound; not a number stays so."""
    (result,) = one_pass(_clip, x, settings=np.array([bound, scale], x.dtype))
    return result


@jit
def _clip(x, new, settings, past):
    bound, scale = settings[0], settings[1]
    for k in range(x.size):
        value = scale * x[k]
        value = bound if value > bound else value
        put(new, k, -bound if value < -bound else value, past)
    drain(past)
