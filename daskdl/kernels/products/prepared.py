"""Products in inference: weights that are put in order once, and results finished as summed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.products.finish import Finish, ends_of
from daskdl.kernels.runtime.memory import empty

Array = NDArray[np.floating]


class Prepared(ABC):
    """A product of arrays with weights that do not change any more, such as a convolution."""

    #: Of the results, with the rest of the last panel.
    bias: Array

    @abstractmethod
    def shape_of(self, x: Array) -> tuple[int, ...]:
        """Return the shape of the result for x."""

    @abstractmethod
    def finishing(self, y: Array, x: Array, ends: Finish) -> Callable[[], object]:
        """Return a function that computes and finishes y, bound to arrays and threads."""

    def work_of(
        self, y: Array, x: Array, residual: Array | None = None, low: float = -np.inf,
        high: float = np.inf,
    ) -> Callable[[], object]:  # fmt: skip
        """Return a function that computes a call into y, C-contiguous and not empty."""
        return self.finishing(y, x, ends_of(y, self.bias, residual, low, high))

    def __call__(self, x: Array, *end: Any) -> Array:
        """Return ``min(max(product + bias + residual, low), high)``; the end as in :meth:`work_of`.

        Arrays are aligned and C-contiguous, but for a convolution whose images lie in
        ``any_order``.
        """
        y = empty(self.shape_of(x), x.dtype)
        if y.size:
            self.finishing(y, x, ends_of(y, self.bias, *end))()
        return y
