"""Add bias and residual sum to a product's sums, and limit them, before they are written.

``min(max(sum + bias + residual, low), high)``: a ReLU has the limits 0 and infinity; no limits are
infinities. In one pass with the last sums this costs next to nothing; each separate pass over
memory would take as long as the products of a small convolution.
:class:`Prepared` is a product in inference, with weights that are packed once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numpy.typing import NDArray

from daskdl.compat.numba_compiler import cgutils
from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.llvm import (
    BYTE,
    all_lanes,
    lanes_below,
    load,
    size_of,
    store,
    whole,
)
from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.runtime.team import over_rows

Array = NDArray[Any]

#: Least rows of a part of a separate pass.
_LEAST = 64


class Finish(NamedTuple):
    """The end of a convolution in inference.

    ``bias`` is (filters and the rest of the last panel,). ``residual``, of the result's shape, is
    added; the result itself stands for no residual. ``limits`` (2,) bound the results.
    """

    bias: Array
    residual: Array
    limits: Array


#: numba types that follow a product's: the bias' address, bytes from a result to its residual (0
#: for none), and both limits.
def kinds(like: Any) -> tuple[Any, ...]:
    """Return the types of the arguments of :func:`write_finished`."""
    number = types.float32 if like.dtype == types.uint32 else like.dtype
    return types.intp, types.intp, number, number


def added_if(builder: ir.IRBuilder, add: Any, totals: list[Any], places: list[Any]) -> list[Any]:
    """Generate vectors of sums, plus the vectors at some places if ``add`` is set."""
    kind, nothing = totals[0].type, _zeros(builder, totals[0].type)
    size = size_of(kind.element)
    return [
        builder.fadd(total, load(builder, builder.select(add, place, nothing), 0, kind, size))
        for total, place in zip(totals, places, strict=True)
    ]


def write_finished(
    builder: ir.IRBuilder,
    totals: list[Any],
    places: list[Any],
    finish: Any,
    columns: Any = None,
    width: int = 0,
) -> None:
    """Generate the end of some vectors of sums, and their stores.

    All are read before one is written, since a row may occur twice. Places are (byte pointer of the
    target, bytes after the bias' address); ``finish`` are LLVM values of :func:`kinds`. If a row
    does not consist of whole vectors, ``columns`` are its columns; a row then has one or two
    vectors of ``width`` bytes.
    """
    bias, residual, low, high = finish
    kind = totals[0].type
    size = size_of(kind.element)
    lonely = builder.icmp_signed("==", residual, whole(0))
    least, most = (all_lanes(builder, kind, limit) for limit in (low, high))
    shift, nothing = builder.inttoptr(bias, BYTE), _zeros(builder, kind)
    masks: dict[int, Any] = {}
    for _, behind in places if columns is not None else ():
        if behind.constant not in masks:
            first = behind.constant // width * kind.count
            masks[behind.constant] = lanes_below(builder, kind.count, columns, first)
    values = []
    for total, (place, behind) in zip(totals, places, strict=True):
        other = builder.select(lonely, nothing, builder.gep(place, [residual]))
        mask = None if columns is None else masks[behind.constant]
        value = builder.fadd(total, load(builder, builder.gep(shift, [behind]), 0, kind, size))
        value = builder.fadd(value, load(builder, other, 0, kind, size, mask))
        # NaN stays.
        value = builder.select(builder.fcmp_ordered("<", value, least), least, value)
        values.append(builder.select(builder.fcmp_ordered(">", value, most), most, value))
    for value, (place, behind) in zip(values, places, strict=True):
        store(builder, value, place, 0, size, None if columns is None else masks[behind.constant])


def _zeros(builder: ir.IRBuilder, kind: Any) -> Any:
    zeros = ir.Constant(kind, [0.0] * kind.count)
    return builder.bitcast(cgutils.alloca_once_value(builder, zeros), BYTE)


@jit
def limited(value, low, high):
    """Return a number within limits; NaN stays."""
    value = low if value < low else value
    return high if value > high else value


@jit
def finish_rows(y, residual, bias, limits):
    """Finish sums (rows, columns) in place; the residual may be None."""
    low, high = limits[0], limits[1]
    for r in range(y.shape[0]):
        for c in range(y.shape[1]):
            value = y[r, c] + bias[c]
            if residual is not None:
                value += residual[r, c]
            y[r, c] = limited(value, low, high)


def finish_sums(y: Array, finish: Finish) -> None:
    """Finish sums (..., filters) in place, in a separate pass."""
    filters = y.shape[-1]
    rows = y.reshape(-1, filters)
    residual = None if finish.residual is y else finish.residual.reshape(-1, filters)
    over_rows(finish_rows, (rows, residual), _LEAST, finish.bias, finish.limits)


def finish_of(
    y: Array, bias: Array, residual: Array | None = None, low: float = -np.inf, high: float = np.inf
) -> Finish:
    """Return the end of sums that are written to ``y``."""
    return Finish(bias, y if residual is None else residual, np.array((low, high), bias.dtype))


class Prepared(ABC):
    """A product of arrays with fixed weights, such as a convolution."""

    #: Bias of the results, with the rest of the last panel.
    bias: Array

    @abstractmethod
    def shape_of(self, x: Array) -> tuple[int, ...]:
        """Return the shape of the result for x."""

    @abstractmethod
    def finishing(self, y: Array, x: Array, finish: Finish) -> Callable[[], object]:
        """Return a function without arguments that computes and finishes ``y``."""

    def work_of(
        self, y: Array, x: Array, residual: Array | None = None, low: float = -np.inf,
        high: float = np.inf, half: bool = False,
    ) -> Callable[[], object]:  # fmt: skip
        """Return a function that writes a call's result to ``y``, C-contiguous and not empty."""
        return self.finishing(y, x, finish_of(y, self.bias, residual, low, high))

    def __call__(
        self, x: Array, residual: Array | None = None, low: float = -np.inf, high: float = np.inf,
        half: bool = False,
    ) -> Array:  # fmt: skip
        """Return ``min(max(product + bias + residual, low), high)``, in bfloat16 if ``half``.

        Arrays are aligned and C-contiguous, except images of a convolution with ``any_order``. With
        "bf16-tiles", x may be bfloat16 numbers, uint16, and the result may be such.
        """
        y = empty(self.shape_of(x), np.uint16 if half else self.bias.dtype)
        if y.size:
            self.work_of(y, x, residual, low, high)()
        return y
