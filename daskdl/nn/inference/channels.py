"""Rules for channels: joined, shuffled and split, in one pass over memory for all three.

Two results that lie channels last are joined when somebody reads them so. Where a shuffle as
ShuffleNet's follows, which takes a channel of the one and a channel of the other in turns
(reshape, transpose, reshape), they are brought into that order from where they lie; and where that
is split, each piece is.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from daskdl import ops
from daskdl.kernels.vectors.joining import InTurns, side_by_side
from daskdl.nn.inference.passes import Pass, array_of, rule
from daskdl.nn.inference.pending import Joined, Pending
from daskdl.nn.inference.program import memory_order
from daskdl.nn.inference.rules import extension
from daskdl.tensor import Array, Tensor

#: Order in which images that lie channels last show their axes channels first.
FIRST = (0, 3, 1, 2)


class Pair(NamedTuple):
    """Two arrays (N, H, W, C) of which something that waits is made, and how.

    ``how`` is "joined", "in groups" where the axis of the two and that of their channels are apart,
    or "in turns".
    """

    a: Array
    b: Array
    how: str


@rule(ops.concatenate)
def concatenate(run: Pass, *parts: Any, axis: int = -1) -> Any:
    """Join channels in one pass over memory; let a pair of the same shape wait."""
    last, kind = parts[0].shape, parts[0].dtype
    order = next((memory_order(array_of(part)) for part in parts), None)
    if order is None or order[-1] != axis % len(last) or kind != np.float32:
        return None
    arrays = [array_of(part) for part in parts]
    if any(memory_order(a) != order or a.dtype != kind for a in arrays):
        return None
    if any(a.shape[: order[-1]] != last[: order[-1]] for a in arrays):
        return None
    flat = [a.transpose(order) for a in arrays]
    if any(a.shape[:-1] != flat[0].shape[:-1] for a in flat):
        return None
    back = tuple(int(i) for i in np.argsort(order))
    if len(flat) == 2 and back == FIRST and flat[0].shape == flat[1].shape:
        return _waiting(run, Pair(flat[0], flat[1], "joined"), back)
    y = run.call(side_by_side, *flat)
    return Tensor(y.transpose(back))


@rule(ops.reshape)
def reshape(run: Pass, x: Any, *, shape: Sequence[int]) -> Any:
    """Take a pair's two axes apart, or give the shuffled ones back their shape."""
    pair = _pair(x)
    if pair is None:
        return None
    images, rows, columns, channels = pair.a.shape
    state = pair.how, x.axes, tuple(shape)
    if state == ("joined", FIRST, (images, 2, channels, rows, columns)):
        return _waiting(run, pair._replace(how="in groups"), (0, 3, 4, 1, 2))
    if state == ("in groups", (0, 4, 3, 1, 2), (images, 2 * channels, rows, columns)):
        return _waiting(run, pair._replace(how="in turns"), FIRST)
    return None


@rule(ops.split)
def split(run: Pass, x: Any, *, sizes: Sequence[int], axis: int = -1) -> Any:
    """Make each piece of shuffled channels on its own."""
    if not _shuffled(x) or axis not in (1, -3) or sum(sizes) != x.shape[1]:
        return None
    if any(size % 2 for size in sizes):
        return None
    ends = np.cumsum([0, *sizes])
    return tuple(_piece(run, x.source, *map(int, cut)) for cut in pairwise(ends))


@rule(ops.take)
def take(run: Pass, x: Any, *, index: tuple[Any, ...]) -> Any:
    """Make a slice of shuffled channels on its own."""
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
    """Return whether x is to be a pair's channels in turns, shown channels first."""
    pair = _pair(x)
    return pair is not None and pair.how == "in turns" and x.axes == FIRST


def _piece(run: Pass, pair: Pair, first: int, end: int) -> Tensor:
    y = run.call(InTurns(first // 2, (end - first) // 2), pair.a, pair.b)
    return Tensor(y.transpose(FIRST))


def _pair(x: Any) -> Pair | None:
    """Return the pair that is to be made into something, if nothing has joined that yet."""
    if isinstance(x, Pending) and isinstance(x.source, Pair) and x.waiting and x.joined.bare:
        return x.source
    return None


def _waiting(run: Pass, pair: Pair, axes: tuple[int, ...]) -> Pending:
    """Return what becomes of a pair when it is read, shown with its axes in an order."""
    *pixels, channels = pair.a.shape
    extend = extension(run)

    def compute(joined: Joined) -> Array:
        if pair.how == "in turns":
            y: Array = run.call(InTurns(0, channels), pair.a, pair.b)
        else:
            y = run.call(side_by_side, pair.a, pair.b).reshape(shape)
        return y if joined.bare else extend(y, joined)

    groups = (2, channels) if pair.how == "in groups" else (2 * channels,)
    shape = (*pixels, *groups)
    found = Pending(compute, extend, shape, pair.a.dtype, axes=axes)
    found.source = pair
    return found
