"""Blocks: a pointwise convolution together with the ones before it that nobody else reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from daskdl.kernels.convolution.bottleneck import Bottleneck, serves
from daskdl.kernels.convolution.inference import Convolution
from daskdl.nn.inference.passes import Pass, array_of
from daskdl.nn.inference.pending import Norm, Pending
from daskdl.tensor import Array


class Source(NamedTuple):
    """Holds the input of a convolution that waits, and prepares its weights with a norm."""

    x: Any
    prepare: Callable[[Norm | None], Convolution]


def with_those_before(run: Pass, last: Convolution, x: Any) -> tuple[Any, Array]:
    """Return what computes a convolution of x, maybe with those that x waits for, and its input."""
    middle = _convolution(x) if last.way == "pointwise" else None
    if middle is None:
        return last, array_of(x)
    depthwise = middle.source.prepare(middle.joined.norm)
    if depthwise.way != "depthwise":
        return last, array_of(x)
    first = _convolution(middle.source.x)
    if first is not None:
        expand = first.source.prepare(first.joined.norm)
        if serves(expand, depthwise, last, first.source.x.shape):
            made = _block(run, expand, depthwise, last, first, middle)
            return made, array_of(first.source.x)
    if serves(None, depthwise, last, middle.source.x.shape):
        return _block(run, None, depthwise, last, None, middle), array_of(middle.source.x)
    return last, array_of(x)


def _convolution(x: Any) -> Pending | None:
    """Return the convolution whose result x is, if that waits and only x's one reader wants it."""
    found = x.alone() if isinstance(x, Pending) and x.axes is None else None
    if found is None or not isinstance(found.source, Source):
        return None
    return None if found.joined.beside is not None else found


def _block(
    run: Pass,
    expand: Convolution | None,
    depthwise: Convolution,
    last: Convolution,
    first: Pending | None,
    middle: Pending,
) -> Bottleneck:
    limits = [
        (-1.0, 1.0) if at is None else (at.joined.low, at.joined.high) for at in (first, middle)
    ]
    key = "bottleneck", *map(id, (expand, depthwise, last)), *limits
    found: Bottleneck = run.prepared.get(
        key, lambda: Bottleneck(expand, depthwise, last, limits[0], limits[1])
    )
    return found
