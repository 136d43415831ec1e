"""Products in inference: weights that are put in order once, and results finished as summed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.runtime.memory import empty

Array = NDArray[np.floating]


class Prepared(ABC):
    """A product of arrays with weights that do not change any more, such as a convolution."""

    @abstractmethod
    def shape_of(self, x: Array) -> tuple[int, ...]:
        """Return the shape of the result for x."""

    @abstractmethod
    def work_of(
        self,
        y: Array,
        x: Array,
        residual: Array | None = None,
        low: float = -np.inf,
        high: float = np.inf,
    ) -> Callable[[], object]:
        """Return a function that computes a call into y, bound to its arrays and threads.

        ``y`` is C-contiguous and not empty.
        """

    def __call__(
        self, x: Array, residual: Array | None = None, low: float = -np.inf, high: float = np.inf
    ) -> Array:
        """Return ``min(max(product + bias + residual, low), high)``, for all of the result's shape.

        Arrays are aligned and C-contiguous, but for a convolution whose images lie in
        ``any_order``.
        """
        y = empty(self.shape_of(x), x.dtype)
        if y.size:
            self.work_of(y, x, residual, low, high)()
        return y
