"""Pointwise convolutions of joined channels in inference, which are read where they lie."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.convolution.inference import Convolution
from daskdl.kernels.products import gathered
from daskdl.kernels.products.finish import ends_of
from daskdl.kernels.runtime.memory import empty

Array = NDArray[np.float32]


class JoinedConvolution:
    """A pointwise convolution of what several arrays have side by side, normed and limited.

    The convolution's way is "pointwise"; scale and shift (channels,) are the norm's, the limits
    those of what is convolved.
    """

    def __init__(
        self,
        convolution: Convolution,
        scale: Array | None = None,
        shift: Array | None = None,
        low: float = -np.inf,
        high: float = np.inf,
    ) -> None:
        self.convolution, channels = convolution, convolution.packed.shape[1]
        self.norm = gathered.Norm(
            np.ones(channels, np.float32) if scale is None else scale,
            np.zeros(channels, np.float32) if shift is None else shift,
            np.array([low, high], np.float32),
        )

    def __call__(self, residual: Array | None, low: float, high: float, *parts: Array) -> Array:
        """Return ``min(max(convolution + bias + residual, low), high)``.

        The residual, of the result's shape, and the parts (N, H, W, channels) are C-contiguous.
        """
        y = empty((*parts[0].shape[:3], self.convolution.filters), parts[0].dtype)
        if y.size:
            self.work_of(y, residual, low, high, *parts)()
        return y

    def work_of(
        self, y: Array, residual: Array | None, low: float, high: float, *parts: Array
    ) -> Callable[[], object]:
        """Return a function that computes a call into y, bound to its arrays and threads.

        ``y`` is C-contiguous and not empty.
        """
        results = y.reshape(-1, y.shape[3])
        ends = ends_of(y, self.convolution.bias, residual, low, high)
        ends = ends._replace(residual=ends.residual.reshape(results.shape))
        rows = [part.reshape(-1, part.shape[3]) for part in parts]
        return gathered.work_of(rows, self.norm, self.convolution.packed, results, ends)
