"""Fixed int8 weights, packed once: convolutions and affine maps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.int8.arithmetic import parts_of, way_of
from daskdl.kernels.int8.block import COLUMNS
from daskdl.kernels.int8.product import End, Panels, work_of
from daskdl.kernels.int8.scale import LARGEST, Scale
from daskdl.kernels.products.microkernel import LANES
from daskdl.kernels.runtime.memory import aligned, empty
from daskdl.kernels.tiles.instructions import SIDE

Floats = NDArray[np.float32]
Int8 = NDArray[np.int8]

Bytes = NDArray[np.uint8]


def quantised(weight: Floats) -> tuple[Int8, Floats]:
    """Return weights (out, ...) as integers from -127 to 127, and the filters' scales (out,).

    ``number * scale`` approximates ``weight``; a filter of zeros has the scale 1.
    """
    flat = weight.reshape(len(weight), -1)
    scale = (np.abs(flat).max(1, initial=0) / LARGEST).astype(np.float32)
    scale[scale == 0] = 1
    numbers = np.rint(flat / scale[:, None]).clip(-LARGEST, LARGEST)
    return numbers.astype(np.int8).reshape(weight.shape), scale


def panels_of(
    weight: Int8, scale: Floats, bias: Floats | None, zero: int, groups: int = 1, way: str = ""
) -> Panels:
    """Return panels of weights (out, kh, kw, in / groups) for bytes whose ``zero`` stands for 0.

    ``in / groups`` is a multiple of 4, or 1 with as many groups as filters. ``scale`` (out,) is a
    sum's: the filter's scale times the bytes'. The sums' first summands subtract the offset:
    ``sum(w * (x - zero)) = sum(w * x) - zero * sum(w)``. ``way`` is one of
    :data:`~daskdl.kernels.int8.arithmetic.WAYS`, by default the fastest.
    """
    depthwise = weight.shape[3] == 1
    assert weight.shape[3] % 4 == 0 or (depthwise and groups == len(weight))
    cut = 1 if depthwise else groups
    filters = len(weight) // cut
    panels = -(-filters // COLUMNS)

    def spread(numbers: NDArray[Any]) -> NDArray[Any]:
        """Return numbers (out, ...) with zeros after each group, up to whole panels."""
        y = np.zeros((cut, panels * COLUMNS, *numbers.shape[1:]), numbers.dtype)
        y[:, :filters] = numbers.reshape(cut, filters, *numbers.shape[1:])
        return y.reshape(-1, *numbers.shape[1:])

    flat = spread(weight.reshape(len(weight), -1))
    columns = np.zeros((3, len(flat)), np.int32)
    columns[0] = -zero * flat.sum(1, dtype=np.int32)
    columns[1] = spread(scale).view(np.int32)
    if bias is not None:
        columns[2] = spread(bias).view(np.int32)
    if depthwise:  # a word for each weight, filled with zeros
        flat = np.pad(flat[:, :, None], ((0, 0), (0, 0), (0, 3))).reshape(len(flat), -1)
    words = flat.reshape(cut * panels, COLUMNS, -1, 4).transpose(0, 2, 1, 3)
    if parts_of(way or way_of(LANES)) == 2:  # shorts: even numbers of all columns, then odd ones
        words = np.stack([words[..., ::2], words[..., 1::2]], 2).astype(np.int16)
    # AMX's last tile may reach beyond the last panel, where A is zero.
    rows, depth = words.shape[:2]
    memory = aligned((rows * depth + SIDE, words[0, 0].nbytes // 4), np.int32)
    memory[-SIDE:] = 0
    lines = memory[:-SIDE].reshape(rows, depth, -1)
    lines[:] = np.ascontiguousarray(words).view(np.int32).reshape(lines.shape)
    return Panels(lines, columns, filters, weight.shape[3], depthwise)


class Product:
    """A convolution of bytes; with the geometry of one point, an affine map of rows.

    Weights are (out, kh, kw, in / groups). With groups, ``in / groups`` is a multiple of 4, or 1
    with as many filters as groups. Scale and bias (out,) are the weights', ``of_x`` is the bytes'.
    """

    def __init__(
        self, weight: NDArray[np.int8], scale: Floats, bias: Floats | None, geometry: Geometry,
        of_x: Scale,
    ) -> None:  # fmt: skip
        self.geometry, self.zero, self.filters = geometry, of_x.zero, len(weight)
        #: Channels of the bytes, and pixels of zeros on both sides of images.
        self.channels, self.sides = weight.shape[3] * geometry.groups, (0, 0)
        self._within = geometry
        if geometry.groups == 1:
            self.channels = -(-weight.shape[3] // 4) * 4
            more = self.channels - weight.shape[3]
            weight = np.pad(weight, ((0, 0), (0, 0), (0, 0), (0, more))) if more else weight
            if self.channels == 4 and geometry.kernel[1] > 1 and geometry.dilation[1] == 1:
                # The taps of a row are contiguous, so they are one.
                self.sides = geometry.pad[2:]
                pad, dilation = (*geometry.pad[:2], 0, 0), (geometry.dilation[0], 1)
                self._within = Geometry((geometry.kernel[0], 1), geometry.stride, pad, dilation)
                weight = weight.reshape(len(weight), geometry.kernel[0], 1, -1)
        sums = scale * np.float32(of_x.scale)
        self.panels = panels_of(weight, sums, bias, of_x.zero, geometry.groups)

    def work_of(self, y: NDArray[Any], x: Bytes, *end: Any) -> Callable[[], object]:
        """Return a function without arguments that writes a call's result to ``y``.

        It is bound to its arrays and threads. ``y`` is C-contiguous and not empty.
        """
        if x.ndim != 4:
            x, y = x.reshape(1, 1, -1, x.shape[-1]), y.reshape(1, 1, -1, y.shape[-1])
        return work_of(x, self.zero, self.panels, self._within, y, End(*end))

    def __call__(self, x: Bytes, *end: Any) -> NDArray[Any]:
        """Return the finished sums, float32 or bytes.

        See :mod:`daskdl.kernels.int8.block` for the steps, and
        :class:`~daskdl.kernels.int8.product.End` for the end. ``x`` (N, H, W, channels) or (...,
        channels), C-contiguous, comes from
        :func:`~daskdl.kernels.int8.channels.widened`, unless :meth:`fits`.
        """
        shape = *x.shape[:-1], self.filters
        if x.ndim == 4:
            width = x.shape[2] - sum(self.sides)
            shape = len(x), *self.geometry.size(x.shape[1], width), self.filters
        y = empty(shape, np.float32 if End(*end).into is None else np.uint8)
        if y.size:
            self.work_of(y, x, *end)()
        return y

    def fits(self, x: Bytes) -> bool:
        """Return whether bytes can be used without ``widened``."""
        return x.shape[-1] == self.channels and self.sides == (0, 0)

    @property
    def widths(self) -> tuple[int, int, int, int]:
        """Arguments of ``widened``: channels, pixels left and right, and their byte."""
        return self.channels, *self.sides, self.zero
