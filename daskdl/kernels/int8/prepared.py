"""Int8 weights that do not change any more, put in order once: convolutions and affine maps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.int8.product import End, work_of
from daskdl.kernels.int8.scale import Scale
from daskdl.kernels.int8.weights import panels_of
from daskdl.kernels.runtime.memory import empty

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]


class Product:
    """A convolution of bytes; with the geometry of one point, an affine map of rows.

    Parameters
    ----------
    weight : int8 array (out, kh, kw, in)
    scale, bias : float32 arrays (out,)
        Of the weights; the bias may be None.
    geometry : Geometry
        Without groups.
    of_x : Scale
        Of the bytes.
    """

    def __init__(
        self, weight: NDArray[np.int8], scale: Floats, bias: Floats | None, geometry: Geometry,
        of_x: Scale,
    ) -> None:  # fmt: skip
        self.geometry, self.zero, self.filters = geometry, of_x.zero, len(weight)
        #: Channels that rows of bytes have at least: a multiple of 4.
        self.channels = -(-weight.shape[3] // 4) * 4
        if self.channels != weight.shape[3]:
            more = self.channels - weight.shape[3]
            weight = np.pad(weight, ((0, 0), (0, 0), (0, 0), (0, more)))
        self.panels = panels_of(weight, scale * np.float32(of_x.scale), bias, of_x.zero)

    def work_of(
        self,
        y: NDArray[Any],
        x: Bytes,
        beside: NDArray[Any] | None = None,
        of_beside: Scale | None = None,
        low: float = -np.inf,
        high: float = np.inf,
        into: Scale | None = None,
    ) -> Callable[[], object]:
        """Return a function that computes a call into y, bound to its arrays and threads.

        ``y`` is C-contiguous and not empty.
        """
        if x.ndim != 4:
            x, y = x.reshape(1, 1, -1, x.shape[-1]), y.reshape(1, 1, -1, y.shape[-1])
        end = End(beside, of_beside, low, high, into)
        return work_of(x, self.zero, self.panels, self.geometry, y, end)

    def __call__(
        self,
        x: Bytes,
        beside: NDArray[Any] | None = None,
        of_beside: Scale | None = None,
        low: float = -np.inf,
        high: float = np.inf,
        into: Scale | None = None,
    ) -> NDArray[Any]:
        """Return the finished sums, float32; bytes where ``into`` is given.

        See :mod:`daskdl.kernels.int8.block` for the steps.

        Parameters
        ----------
        x : uint8 array (N, H, W, channels) or (..., channels), C-contiguous
        beside : array of the result's shape, C-contiguous, optional
            float32; bytes with their scale.
        of_beside, into : Scale, optional
        low, high : float
        """
        shape = *x.shape[:-1], self.filters
        if x.ndim == 4:
            shape = len(x), *self.geometry.size(*x.shape[1:3]), self.filters
        y = empty(shape, np.float32 if into is None else np.uint8)
        if y.size:
            self.work_of(y, x, beside, of_beside, low, high, into)()
        return y


def widened(x: Bytes, channels: int) -> Bytes:
    """Return bytes with so many channels, the last of which do not matter."""
    y = empty((*x.shape[:-1], channels), np.uint8)
    y[..., : x.shape[-1]] = x
    y[..., x.shape[-1] :] = 0
    return y
