"""Prepared: a model's weights as kernels of inference want them, made once for all threads."""

from __future__ import annotations

import bisect
import threading
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime.precision import precision

Array = NDArray[Any]


class Prepared:
    """Weights of one model, by what they are prepared for.

    Only what lies in the model's own memory is kept: a weight that is computed in a pass may lie
    where another one lay before. The weights must not change while this is used.

    Parameters
    ----------
    arrays : iterable of arrays
        The model's parameters, buffers and constants.
    """

    def __init__(self, arrays: Iterable[Array]) -> None:
        ranges = sorted(_range(array) for array in arrays if array.size)
        self._starts = [start for start, _ in ranges]
        self._stops = [stop for _, stop in ranges]
        self._made: dict[Any, Any] = {}
        self._lock = threading.Lock()

    def key(self, *arrays: Array | None) -> tuple[Any, ...] | None:
        """Return the key of these arrays; None unless all are the model's own."""
        places: list[Any] = []
        for array in arrays:
            if array is None:
                places.append(None)
                continue
            start = array.__array_interface__["data"][0]
            i = bisect.bisect_right(self._starts, start) - 1
            if i < 0 or start >= self._stops[i]:
                return None
            places.append((start, array.shape, array.strides))
        return tuple(places)

    def get(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return the object made for a key in this thread's precision.

        The first who asks makes it, and the others wait.
        """
        key = key, precision()
        made = self._made.get(key)
        if made is None:
            with self._lock:
                made = self._made.get(key)
                if made is None:
                    made = self._made[key] = make()
        return made


def _range(array: Array) -> tuple[int, int]:
    start, stop = np.lib.array_utils.byte_bounds(array)
    return int(start), int(stop)
