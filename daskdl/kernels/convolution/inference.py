"""Convolution in inference: weights are packed once, and results finished with their sums.

A shape's way is as in :mod:`daskdl.kernels.convolution.conv2d`, but the order of sums never
depends on the number of images: an image's result has the same bits in any batch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.convolution import (
    bfloat16,
    depthwise,
    direct,
    few_channels,
    few_filters,
    tiles_bfloat16,
    winograd,
)
from daskdl.kernels.convolution.conv2d import way
from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.products import gathered, pointwise
from daskdl.kernels.products.finish import Finish, Prepared, finish_of, finish_sums
from daskdl.kernels.products.microkernel import WIDEST_COLUMNS
from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.runtime.precision import precision
from daskdl.kernels.tiles import convolution as tiles
from daskdl.kernels.tiles import product

Array = NDArray[np.floating]


class Convolution(Prepared):
    """A convolution with fixed weights (out, kh, kw, in / groups).

    With few filters the way depends on the ``columns`` of a row of results.
    """

    def __init__(self, weight: Array, bias: Array | None, geometry: Geometry, columns: int) -> None:
        filters, channels = len(weight), weight.shape[3] * geometry.groups
        weight = np.require(weight, requirements=("C", "A", "W"))
        self.geometry, self.filters = geometry, filters
        self.way = way("forward", geometry, channels, filters, columns)
        self.together, self.within = 1, geometry
        by = {"bf16-pairs": bfloat16, "bf16-tiles": tiles}.get(precision())
        if by is not None and by.serves(channels, weight, geometry):
            self.way = precision()
        if self.way == "few_filters":
            self.together = few_filters.together(geometry, filters, columns)
            weight, self.within = few_filters.joined(weight, geometry, columns, self.together)
            self.way = way("joined", self.within, channels, len(weight))
        self.bias = np.zeros(-(-len(weight) // WIDEST_COLUMNS) * WIDEST_COLUMNS, weight.dtype)
        if bias is not None:
            self.bias[: len(weight)] = np.tile(bias, self.together)
        self.packed = self._packed(weight)
        #: Whether images may have any memory order.
        self.any_order = self.way == "few_channels"

    def _packed(self, weight: Array) -> Any:
        if self.way == "winograd":
            return winograd.transform(winograd.Weights(weight, False))
        if self.way == "few_channels":
            return few_channels.panels_of(weight)
        if self.way == "depthwise":
            return depthwise.by_tap(weight)
        if self.way == "bf16-pairs":
            return bfloat16.panels_of(weight).copy()
        if self.way == "bf16-tiles":
            return tiles.packed(weight)
        if self.way == "direct" and self.within.pointwise and self.within.groups == 1:
            self.way = "pointwise"
        groups = tuple(direct.by_group(weight, self.within))
        return groups[0][:, 0] if self.way == "pointwise" else groups

    def shape_of(self, x: Array) -> tuple[int, ...]:
        """Return the shape of the result for x (N, H, W, in): (N, rows, columns, out)."""
        return len(x), *self.geometry.size(*x.shape[1:3]), self.filters

    def finishing(self, y: Array, x: Array, finish: Finish) -> Callable[[], object]:
        """Return a function without arguments that computes and finishes ``y``."""
        if self.together > 1:
            return partial(self._joined, x, y, finish)
        if self.way == "pointwise":
            rows, results = x.reshape(-1, x.shape[3]), y.reshape(-1, y.shape[3])
            finish = finish._replace(residual=finish.residual.reshape(results.shape))
            return pointwise.work_of(rows, self.packed, results, finish)
        if self.way == "bf16-pairs":
            return tiles_bfloat16.work_of(x, self.packed, self.within, y, finish)
        if self.way == "bf16-tiles":
            return product.work_of(x, self.packed, tiles.windows(x.shape, self.within), y, finish)
        if self.way == "depthwise" and finish.residual is y:
            return depthwise.work_of(x, self.packed, self.within, y, finish)
        return partial(self._run, x, y, finish)

    def _run(self, x: Array, y: Array, finish: Finish) -> None:
        within = self.within
        if self.way == "winograd":
            first = within.pad[0], within.pad[2]
            winograd.convolve(x, self.packed, first, (y.shape[1], y.shape[2]), y, finish)
        elif self.way == "few_channels":
            few_channels.forward_packed(x, self.packed, within, y, finish)
        elif self.way == "depthwise":
            depthwise.forward_packed(x, self.packed, within, y, finish_of(y, 0 * finish.bias))
            finish_sums(y, finish)
        else:
            direct.forward_packed(x, self.packed, within, y, finish)

    def _joined(self, x: Array, y: Array, finish: Finish) -> None:
        """Convolve joined neighbouring windows, and write their results side by side."""
        images, rows, columns, filters = y.shape
        windows = -(-columns // self.together)
        wide = images, rows, windows, self.together * filters
        if columns % self.together == 0:
            wide_y = y.reshape(wide)
            wide_residual = wide_y if finish.residual is y else finish.residual.reshape(wide)
            self._run(x, wide_y, finish._replace(residual=wide_residual))
            return
        results = empty(wide, y.dtype)
        self._run(x, results, finish_of(results, 0 * self.bias))
        np.copyto(y, results.reshape(images, rows, -1, filters)[:, :, :columns])
        finish_sums(y, finish)


class JoinedConvolution:
    """A pointwise convolution of several arrays' joined channels, normed and limited.

    The convolution's way is "pointwise"; scale and shift (channels,) are the norm's; the limits
    apply to the normed channels.
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
        """Return a function without arguments that writes a call's result to ``y``.

        It is bound to its arrays and threads. ``y`` is C-contiguous and not empty.
        """
        results = y.reshape(-1, y.shape[3])
        finish = finish_of(y, self.convolution.bias, residual, low, high)
        finish = finish._replace(residual=finish.residual.reshape(results.shape))
        rows = [part.reshape(-1, part.shape[3]) for part in parts]
        return gathered.work_of(rows, self.norm, self.convolution.packed, results, finish)
