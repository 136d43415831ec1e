"""Blocks: a pointwise convolution joined with operations before it that nothing else reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from daskdl.kernels.convolution.bottleneck import Bottleneck, serves
from daskdl.kernels.convolution.inference import Convolution, JoinedConvolution
from daskdl.kernels.int8.scale import to_floats
from daskdl.kernels.norms import batchnorm
from daskdl.kernels.products import gathered
from daskdl.nn.inference.pending import Norm, Pending, Rounded
from daskdl.nn.inference.running import Pass, array_of
from daskdl.tensor import Array


class Source(NamedTuple):
    """The input of a pending convolution, and a function that prepares its weights with a norm."""

    x: Any
    prepare: Callable[[Norm | None], Convolution]


class Parts(NamedTuple):
    """C-contiguous (..., C), floats or bytes, whose channels a result joins, and how it joins them.

    ``how`` is "side by side". For two arrays of one shape, or the halves of one array of bytes, it
    may also be "in groups", with an axis for the two and one for their channels, or "in turns",
    where channels of both alternate.
    """

    arrays: tuple[Array | Rounded, ...]
    how: str = "side by side"


def with_those_before(run: Pass, last: Convolution, x: Any) -> tuple[Any, tuple[Array, ...]]:
    """Return a convolution, maybe joined with pending ones before it, and its inputs."""
    if last.way != "pointwise":
        return last, (array_of(x),)
    joined = _of_parts(run, last, x)
    if joined is not None:
        return joined
    middle = _convolution(x)
    if middle is None:
        return last, (array_of(x),)
    depthwise = middle.source.prepare(middle.joined.norm)
    if depthwise.way != "depthwise":
        return last, (array_of(x),)
    first = _convolution(middle.source.x)
    if first is not None:
        expand = first.source.prepare(first.joined.norm)
        if serves(expand, depthwise, last, first.source.x.shape):
            made = _block(run, expand, depthwise, last, first, middle)
            return made, (array_of(first.source.x),)
    if serves(None, depthwise, last, middle.source.x.shape):
        return _block(run, None, depthwise, last, None, middle), (array_of(middle.source.x),)
    return last, (array_of(x),)


def _of_parts(
    run: Pass, last: Convolution, x: Any
) -> tuple[JoinedConvolution, tuple[Array, ...]] | None:
    """Return a convolution of channels that are joined only for it, and the channels."""
    if not isinstance(x, Pending) or x.axes is not None or not isinstance(x.source, Parts):
        return None
    arrays, how = x.source
    if (
        how != "side by side"
        or x.alone() is None
        or not gathered.serves([a.shape[-1] for a in arrays])
    ):
        return None
    norm, bias, residual, low, high, *_ = x.joined
    if bias is not None or residual is not None:
        return None

    def make() -> JoinedConvolution:
        return JoinedConvolution(last, *_scale_and_shift(norm), low, high)

    at = "joined", id(last), key_of(run, norm), low, high
    return run.prepared.get(at, make), tuple(floats_of(run, array) for array in arrays)


def floats_of(run: Pass, x: Array | Rounded) -> Array:
    """Return the numbers that bytes stand for; floats unchanged."""
    return run.call(to_floats, x.bytes, *x.scale) if isinstance(x, Rounded) else x


def key_of(run: Pass, norm: Norm | None) -> Any:
    """Return the key of a norm's statistics among the model's own numbers."""
    return None if norm is None else (run.prepared.key(*norm[:4]), norm.eps)


def _scale_and_shift(norm: Norm | None) -> tuple[Array | None, Array | None]:
    """Return a norm's factors and the summands that follow them, float32 (channels,)."""
    if norm is None:
        return None, None
    _, scale, shift = batchnorm.affine(norm.variance, norm.eps, norm.weight, norm.bias)
    shift = shift - norm.mean * scale
    return scale.astype(np.float32), shift.astype(np.float32)


def _convolution(x: Any) -> Pending | None:
    """Return the convolution with the result x, if it is pending and has one reader only."""
    waiting = x.alone() if isinstance(x, Pending) and x.axes is None else None
    if waiting is None or not isinstance(waiting.source, Source):
        return None
    return None if waiting.joined.residual is not None else waiting


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
    return run.prepared.get(key, lambda: Bottleneck(expand, depthwise, last, limits[0], limits[1]))
