"""Weights as int8: one scale for each filter, symmetric, and in the order of a product."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.int8.arithmetic import parts_of, way_of
from daskdl.kernels.int8.block import COLUMNS
from daskdl.kernels.int8.product import Panels
from daskdl.kernels.int8.scale import LARGEST
from daskdl.kernels.products.microkernel import LANES
from daskdl.kernels.tiles.instructions import SIDE

Floats = NDArray[np.float32]
Int8 = NDArray[np.int8]


def quantised(weight: Floats) -> tuple[Int8, Floats]:
    """Return weights (out, ...) as whole numbers from -127 to 127, and the filters' scales (out,).

    ``weight`` is next to ``number * scale``; a filter of zeros has the scale 1.
    """
    flat = weight.reshape(len(weight), -1)
    scale = (np.abs(flat).max(1, initial=0) / LARGEST).astype(np.float32)
    scale[scale == 0] = 1
    numbers = np.rint(flat / scale[:, None]).clip(-LARGEST, LARGEST)
    return numbers.astype(np.int8).reshape(weight.shape), scale


def panels_of(
    weight: Int8, scale: Floats, bias: Floats | None, zero: int, groups: int = 1, way: str = ""
) -> Panels:
    """Return weights (out, kh, kw, in / groups) for bytes of which ``zero`` stands for 0.

    ``in / groups`` is a multiple of 4, or 1 with as many groups as filters. ``scale`` (out,) is
    that of a sum: the filter's times that of the bytes. The offset is taken out where sums begin:
    ``sum(w * (x - zero)) = sum(w * x) - zero * sum(w)``. ``way``: one of
    :data:`~daskdl.kernels.int8.arithmetic.WAYS`, the quickest by default.
    """
    depthwise = weight.shape[3] == 1
    assert weight.shape[3] % 4 == 0 or (depthwise and groups == len(weight))
    cut = 1 if depthwise else groups
    filters = len(weight) // cut
    panels = -(-filters // COLUMNS)

    def spread(numbers: NDArray[Any]) -> NDArray[Any]:
        """Return numbers (out, ...) with zeros behind each group, up to whole panels."""
        y = np.zeros((cut, panels * COLUMNS, *numbers.shape[1:]), numbers.dtype)
        y[:, :filters] = numbers.reshape(cut, filters, *numbers.shape[1:])
        return y.reshape(-1, *numbers.shape[1:])

    flat = spread(weight.reshape(len(weight), -1))
    columns = np.zeros((3, len(flat)), np.int32)
    columns[0] = -zero * flat.sum(1, dtype=np.int32)
    columns[1] = spread(scale).view(np.int32)
    if bias is not None:
        columns[2] = spread(bias).view(np.int32)
    if depthwise:  # a word for each weight, with zeros behind it
        flat = np.pad(flat[:, :, None], ((0, 0), (0, 0), (0, 3))).reshape(len(flat), -1)
    words = flat.reshape(cut * panels, COLUMNS, -1, 4).transpose(0, 2, 1, 3)
    if parts_of(way or way_of(LANES)) == 2:  # shorts: the even numbers of all columns, the odd ones
        words = np.stack([words[..., ::2], words[..., 1::2]], 2).astype(np.int16)
    # A last tile of AMX's may reach behind the last panel, with zeros of A.
    rows, depth = words.shape[:2]
    line = np.zeros((rows * depth + SIDE, words[0, 0].nbytes // 4), np.int32)
    line[:-SIDE] = np.ascontiguousarray(words).view(np.int32).reshape(rows * depth, -1)
    line = line[:-SIDE].reshape(rows, depth, -1)
    return Panels(line, columns, filters, weight.shape[3], depthwise)
