"""Weights as int8: one scale for each filter, symmetric, and in the order of a product."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from daskdl.kernels.int8.block import COLUMNS
from daskdl.kernels.int8.product import Panels
from daskdl.kernels.int8.scale import LARGEST

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


def panels_of(weight: Int8, scale: Floats, bias: Floats | None, zero: int) -> Panels:
    """Return weights (out, kh, kw, in) for bytes of which ``zero`` stands for 0.

    The offset is taken out where sums begin: ``sum(w * (x - zero)) = sum(w * x) - zero * sum(w)``.

    Parameters
    ----------
    weight : int8 array
        ``in`` is a multiple of 4.
    scale : float32 array (out,)
        Of a sum: the filter's times that of the bytes.
    bias : float32 array (out,), optional
    zero : int
    """
    filters, channels = len(weight), weight.shape[3]
    panels = -(-filters // COLUMNS)
    flat = np.zeros((panels * COLUMNS, weight[0].size), np.int8)
    flat[:filters] = weight.reshape(filters, -1)
    words = flat.reshape(panels, COLUMNS, -1, 4).transpose(0, 2, 1, 3)
    columns = np.zeros((3, panels * COLUMNS), np.int32)
    columns[0] = -zero * flat.sum(1, dtype=np.int32)
    columns[1, :filters].view(np.float32)[:] = scale
    if bias is not None:
        columns[2, :filters].view(np.float32)[:] = bias
    plain = np.ascontiguousarray(words).view(np.int32).reshape(panels, -1, COLUMNS)
    assert channels % 4 == 0
    return Panels(plain, columns, filters)
