"""Large samples, such as whole scenes: the shape of their results is told by small ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DaskdlError

Array = NDArray[Any]
Shape = tuple[int, ...]

#: Bytes of a sample above which it is not tried whole before anything is computed.
LARGE = 32_000_000
#: Step between the lengths that are tried, a multiple of the usual strides 2 to 6, 8, 10, 12, ...
PERIOD = 480
#: The same for axes that stay thin meanwhile.
THIN = 96
#: Lengths along each axis: with four, a stride that does not divide ``PERIOD`` is noticed.
TRIED = 4


def result_of_large(passed: Callable[[Array], Array], shape: Shape, dtype: Any) -> Array | None:
    """Return an empty result (0, ...) of samples too large to be tried, None if it is not certain.

    Strips of a few lengths pass through the model, each as long as the whole modulo ``PERIOD``.
    When the result grows evenly with them, along each axis for itself, it is known for any length.
    ``passed`` gives the results of samples (n, ...) of this dtype; ``shape`` is that of those that
    would be tried, whose last axis is that of channels.
    """
    thin, long = list(shape), {}
    for axis, n in list(enumerate(shape))[1:-1]:
        if n >= PERIOD * (TRIED + 1):
            thin[axis] = THIN + n % THIN
            long[axis] = [THIN + (n - THIN) % PERIOD + PERIOD * i for i in range(TRIED)]
    if not long:
        return None

    def result(lengths: dict[int, int]) -> Array:
        return passed(np.zeros([lengths.get(a, n) for a, n in enumerate(thin)], dtype))

    try:
        base = result({})
        whole, joint, origin = [*base.shape], {}, np.array(base.shape)
        sums = origin.copy()
        for axis, lengths in long.items():
            strips = np.array([result({axis: n}).shape for n in lengths])
            growth = np.diff(strips, axis=0)
            if (growth != growth[0]).any():
                return None
            at_end = strips[0] + growth[0] * ((shape[axis] - lengths[0]) // PERIOD)
            whole = [w + int(e - o) for w, e, o in zip(whole, at_end, origin, strict=True)]
            joint[axis] = lengths[1]
            sums += strips[1] - origin
        # Where axes are joined, as tokens of patches are, the growth along one depends on others.
        if len(joint) > 1 and tuple(sums) != result(joint).shape:
            return None
    except (DaskdlError, ValueError, RuntimeError, IndexError, TypeError):
        return None  # a model of samples of this one size
    return np.empty((0, *whole[1:]), base.dtype)
