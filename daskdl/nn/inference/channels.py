"""Rules that join, shuffle and split channels in one pass over memory or in none.

Arrays with channels last in memory are joined when an operation reads them joined; a 1x1
convolution reads each array in place (:mod:`daskdl.nn.inference.blocks`). A shuffle as in
ShuffleNet alternates channels of two arrays (reshape, transpose, reshape): one pass then joins the
arrays in that order. If the shuffled channels are split, each piece is made by itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from daskdl import ops
from daskdl.kernels.vectors.embedding import InTurns, side_by_side
from daskdl.nn.inference.blocks import Parts, floats_of
from daskdl.nn.inference.pending import Joined, Pending, Rounded, kept
from daskdl.nn.inference.program import memory_order
from daskdl.nn.inference.rules import as_bytes, as_half, extension
from daskdl.nn.inference.running import Pass, array_of, rule
from daskdl.tensor import Array, Tensor

#: Order of axes that shows images with channels last in memory as (N, C, H, W).
FIRST = (0, 3, 1, 2)


@rule(ops.concatenate)
def concatenate(run: Pass, *parts: Any, axis: int = -1) -> Any:
    """Return a pending join of channels that lie side by side in each pixel."""
    of_parts = [_numbers(part) for part in parts]
    order = of_parts[0][1]
    if order is None or order[-1] != axis % len(order) or any(o != order for _, o in of_parts):
        return None
    arrays = tuple(array for some, _ in of_parts for array in some)
    if any(a.shape[:-1] != arrays[0].shape[:-1] for a in arrays):
        return None
    if any(part.dtype != np.float32 for part in parts):
        return None
    back = tuple(int(i) for i in np.argsort(order))
    return waiting(run, Parts(arrays), None if back == tuple(range(len(back))) else back)


def _numbers(value: Any) -> tuple[tuple[Array | Rounded, ...], tuple[int, ...] | None]:
    """Return the arrays that join to a value along their last axes, and its order of axes."""
    if isinstance(value, Pending):
        parts, axes = parts_of(value), value.axes or range(value.ndim)
        in_memory = tuple(int(i) for i in np.argsort(axes))
        if parts is not None and parts.how == "side by side":
            return parts.arrays, in_memory
        if value.scale is not None:
            return (value.numbers,), in_memory
    array = array_of(value)
    order = memory_order(array)
    return (array if order is None else array.transpose(order),), order


@rule(ops.reshape)
def reshape(run: Pass, x: Any, *, shape: Sequence[int]) -> Any:
    """Reshape bytes or pixels, split channels into two axes, or join shuffled channels."""
    parts = parts_of(x)
    if parts is None and isinstance(x, Pending) and x.rounded is not None:
        if x.axes is None:
            return kept(x.rounded.reshape(*shape), extension(run), None)
        parts = Parts((x.rounded,))
    if parts is None or -1 in shape:
        return None
    if parts.how == "side by side" and x.axes is None and tuple(shape[-1:]) == x.shape[-1:]:
        if math.prod(shape) != math.prod(x.shape):
            return None  # the operation raises the error
        arrays = tuple(a.reshape(*shape[:-1], a.shape[-1]) for a in parts.arrays)
        return waiting(run, parts._replace(arrays=arrays), None)
    a, *others = parts.arrays
    if len(others) > 1 or any(b.shape != a.shape for b in others) or len(a.shape) != 4:
        return None
    images, rows, columns, channels = a.shape
    channels = channels if others else channels // 2
    state = parts.how, x.axes, tuple(shape)
    if state == ("side by side", FIRST, (images, 2, channels, rows, columns)):
        return waiting(run, parts._replace(how="in groups"), (0, 3, 4, 1, 2))
    if state == ("in groups", (0, 4, 3, 1, 2), (images, 2 * channels, rows, columns)):
        return waiting(run, parts._replace(how="in turns"), FIRST)
    return None


@rule(ops.split)
def split(run: Pass, x: Any, *, sizes: Sequence[int], axis: int = -1) -> Any:
    """Return the pieces of shuffled channels, each made by itself."""
    if not _shuffled(x) or axis not in (1, -3) or sum(sizes) != x.shape[1]:
        return None
    if any(size % 2 for size in sizes):
        return None
    ends = np.cumsum([0, *sizes])
    return tuple(_piece(run, x.source, *map(int, cut)) for cut in pairwise(ends))


@rule(ops.take)
def take(run: Pass, x: Any, *, index: tuple[Any, ...]) -> Any:
    """Return a slice of shuffled channels, made by itself."""
    if not _shuffled(x) or not all(type(part) is slice for part in index) or len(index) < 2:
        return None
    parts = [part.indices(n) for part, n in zip(index, x.shape, strict=False)]
    rest = parts[:1] + parts[2:]
    if any(part != (0, n, 1) for part, n in zip(rest, (len(x), *x.shape[2:]), strict=False)):
        return None
    first, end, step = parts[1]
    if step != 1 or first % 2 or end % 2 or first >= end:
        return None
    return _piece(run, x.source, first, end)


def _shuffled(x: Any) -> bool:
    """Return whether x is a pending join with alternating channels, shown channels first."""
    parts = parts_of(x)
    return parts is not None and parts.how == "in turns" and x.axes == FIRST


def _piece(run: Pass, parts: Parts, first: int, end: int) -> Tensor:
    y = _in_turns(run, parts, first // 2, (end - first) // 2)
    if isinstance(y, Rounded):
        return kept(y, extension(run), FIRST)
    return Tensor(y.transpose(FIRST))


def _in_turns(run: Pass, parts: Parts, first: int, width: int) -> Array | Rounded:
    """Return alternating channels, ``width`` of each half from ``first`` on."""
    one, in_turns = parts.arrays[0], InTurns(first, width)
    if len(parts.arrays) == 1 and isinstance(one, Rounded):
        return one._replace(bytes=run.call(in_turns, one.bytes))
    floats = [floats_of(run, array) for array in parts.arrays]
    y: Array = run.call(in_turns, *floats)
    return y


def parts_of(x: Any) -> Parts | None:
    """Return the arrays of a pending join, if no operation follows yet."""
    if isinstance(x, Pending) and isinstance(x.source, Parts) and x.waiting and x.joined.bare:
        return x.source
    return None


def waiting(run: Pass, parts: Parts, axes: tuple[int, ...] | None) -> Pending:
    """Return a pending join of arrays, which shows its axes in the order ``axes``."""
    arrays, how = parts
    channels = sum(array.shape[-1] for array in arrays)
    extend = extension(run)

    def compute(joined: Joined) -> Array:
        if how == "side by side":
            make = as_half if joined.half else as_bytes
            made = make(run, arrays, joined)
            if made is not None:
                return made
        if how == "in turns":
            return extend(_in_turns(run, parts, 0, channels // 2), joined)
        if len(arrays) == 1:
            return extend(arrays[0].reshape(*shape), joined)
        floats = [floats_of(run, array) for array in arrays]
        y: Array = run.call(side_by_side, *floats).reshape(shape)
        return extend(y, joined)

    groups = (2, channels // 2) if how == "in groups" else (channels,)
    shape = (*arrays[0].shape[:-1], *groups)
    pending = Pending(compute, extend, shape, np.float32, axes=axes)
    pending.source, pending.gives_bytes, pending.gives_half = parts, True, True
    if len(arrays) == 1 and isinstance(arrays[0], Rounded):
        pending.round(arrays[0].scale)
    return pending
