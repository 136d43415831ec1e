"""Rules that join convolutions and affine maps with the operations that follow them.

A convolution or an affine map stays pending. A batch norm after it is folded into its weights; a
bias, a residual sum and a ReLU after it are applied when its sums are written. All other operations
are computed as usual; a pending result is computed when they read it. The model's own code decides
in every pass which operations run: there is no graph that could differ from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from daskdl import ops
from daskdl.kernels.convolution.geometry import Geometry
from daskdl.kernels.convolution.inference import Convolution, JoinedConvolution
from daskdl.kernels.int8.channels import Rounding
from daskdl.kernels.int8.scale import summed, to_bytes
from daskdl.kernels.norms import batchnorm
from daskdl.kernels.products import matmul as products
from daskdl.kernels.products.affine import Affine
from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.runtime.precision import precision, precision_of
from daskdl.kernels.tiles import convolution as tiles
from daskdl.kernels.tiles.joining import Joining, joinable
from daskdl.kernels.vectors.arithmetic import added
from daskdl.nn.inference.blocks import Source, floats_of, key_of, with_those_before
from daskdl.nn.inference.pending import (
    Extend,
    Joined,
    Norm,
    Pending,
    Rounded,
    half_of,
    used,
    used_half,
)
from daskdl.nn.inference.running import Pass, array_of, rule
from daskdl.ops.arguments import FLOATS
from daskdl.ops.conv.conv import check
from daskdl.ops.norm.batchnorm import _inference
from daskdl.tensor import Array, Tensor


@rule(ops.conv2d)
def conv2d(
    run: Pass,
    x: Any,
    weight: Any,
    bias: Any = None,
    *,
    stride: tuple[int, int] = (1, 1),
    pad: tuple[int, int, int, int] = (0, 0, 0, 0),
    dilation: tuple[int, int] = (1, 1),
    groups: int = 1,
) -> Any:
    """Return a pending convolution with the model's own weights."""
    filters = array_of(weight)
    shift = None if bias is None else array_of(bias)
    key = run.prepared.key(filters, shift)
    if key is None or x.dtype != filters.dtype:
        return None
    geometry = Geometry(filters.shape[1:3], stride, pad, dilation, groups)
    check("conv2d", x, filters, shift, geometry)
    rows, columns = geometry.size(*x.shape[1:3])
    rounds = precision() == "bf16-tiles" and tiles.serves(x.shape[3], filters, geometry)

    def prepare(norm: Norm | None) -> Convolution:
        def make() -> Convolution:
            return Convolution(*folded(filters, shift, norm), geometry, columns)

        return run.prepared.get((key, geometry, columns, key_of(run, norm)), make)

    def compute(joined: Joined) -> Array:
        convolution = prepare(joined.norm)
        more = joined.residual, joined.low, joined.high
        if rounds:
            half = half_of(x)
            image = run.contiguous(x) if half is None else half
            return run.call(convolution, image, *more, joined.half)
        whole, inputs = with_those_before(run, convolution, x)
        if isinstance(whole, JoinedConvolution):
            return run.call(whole, *more, *inputs)
        (image,) = inputs
        if not (convolution.any_order and image.flags.behaved):
            image = run.contiguous(image)
        return run.call(whole, image, *more)

    shape = len(x), rows, columns, len(filters)
    result = Pending(compute, extension(run), shape, filters.dtype)
    result.source = Source(used_half(x) if rounds else used(x), prepare)
    result.gives_half = rounds
    return result


def _affine(run: Pass, x: Any, weight: Array, shift: Array | None, key: Any) -> Pending:
    """Return a pending affine map with the model's own weights (out, in)."""
    rounds = precision_of(weight) == "bf16-tiles"
    used_half(x) if rounds else used(x)

    def compute(joined: Joined) -> Array:
        half, norm = half_of(x) if rounds else None, joined.norm
        rows = run.contiguous(x) if half is None else half
        bias = shift if joined.bias is None else joined.bias
        full_key = key, run.prepared.key(bias), key_of(run, norm)
        affine_map = run.prepared.get(
            ("affine", full_key), lambda: Affine(*folded(weight, bias, norm))
        )
        return run.call(
            affine_map, rows, joined.residual, joined.low, joined.high, joined.half
        )  # fmt: skip

    result = Pending(compute, extension(run), (*x.shape[:-1], len(weight)), weight.dtype)
    result.gives_half = rounds
    return result


@rule(ops.linear)
def linear(run: Pass, x: Any, weight: Any, bias: Any = None) -> Any:
    """Return a pending affine map."""
    matrix = array_of(weight)
    shift = None if bias is None else array_of(bias)
    key = run.prepared.key(matrix, shift)
    if key is None or x.dtype != matrix.dtype or x.shape[-1] != matrix.shape[1] or x.ndim < 2:
        return None
    return _affine(run, x, matrix, shift, key)


@rule(ops.matmul)
def matmul(run: Pass, a: Any, b: Any) -> Any:
    """Return a pending product with the model's own matrix; a vector added later is its bias."""
    matrix = None if isinstance(b, Pending) else array_of(b)
    if a.dtype not in FLOATS or a.dtype != b.dtype or min(a.ndim, b.ndim) < 2:
        return None
    if a.shape[-1] != b.shape[-2]:
        return None  # the operation raises the error
    key = None if matrix is None or matrix.ndim > 2 else run.prepared.key(matrix)
    if key is None or matrix is None:
        if max(a.ndim, b.ndim) < 3:
            return None
        return Tensor(run.call(products.stacked, array_of(a), array_of(b)))
    result = _affine(run, a, matrix.T, None, key)
    result.takes_bias = True
    return result


def folded(weight: Array, bias: Array | None, norm: Norm | None) -> tuple[Array, Array | None]:
    """Return weights (out, ...) and bias that include a batch norm; they are rounded once."""
    if norm is None:
        return weight, bias
    mean, variance, scale, shift, eps = norm
    factor = 1 / np.sqrt(variance.astype(np.float64) + eps)
    factor = factor if scale is None else factor * scale
    before = -mean.astype(np.float64) if bias is None else bias.astype(np.float64) - mean
    whole = before * factor if shift is None else before * factor + shift
    wide = factor.reshape(-1, *(1,) * (weight.ndim - 1))
    return (weight * wide).astype(weight.dtype), whole.astype(weight.dtype)


@rule(_inference)
def batch_norm(
    run: Pass,
    x: Any,
    mean: Any,
    variance: Any,
    weight: Any = None,
    bias: Any = None,
    residual: Any = None,
    *,
    eps: float,
    relu: bool,
) -> Any:
    """Return a pending convolution with the norm folded in, or the pending norm itself."""
    scale, shift = (None if a is None else array_of(a) for a in (weight, bias))
    norm = Norm(array_of(mean), array_of(variance), scale, shift, eps)
    if run.prepared.key(*norm[:4]) is None or x.dtype != norm.mean.dtype:
        return None
    if x.shape[-1:] != norm.mean.shape:
        return None
    if isinstance(x, Pending) and x.waiting and x.axes is None and x.joined.bare:
        result = x.use().with_(x.joined._replace(norm=norm))
    else:
        used(x)
        extend = extension(run)

        def compute(joined: Joined) -> Array:
            plain = isinstance(x, Pending) and x.axes is None
            return extend(x.numbers if plain else array_of(x), joined)

        result = Pending(compute, extend, tuple(x.shape), x.dtype, Joined(norm=norm))
        result.gives_bytes = result.gives_half = True
    if residual is not None:
        with_residual = _added(result, residual)
        if with_residual is None:
            return None
        result = with_residual
    return result.use().with_(result.joined._replace(low=0.0)) if relu else result


def _norm_of(run: Pass, x: Array, norm: Norm, joined: Joined) -> Array:
    """Return a norm and the steps joined with it, computed in one pass."""
    key = "norm", run.prepared.key(*norm[:4]), norm.eps
    lanes = run.prepared.get(key, lambda: _lanes(norm))
    return run.call(_normalise, lanes, x, joined.residual, joined.low, joined.high)


def extension(run: Pass) -> Extend:
    """Return a function that applies steps to an array with other readers, in new passes."""

    def extend(x: Array | Rounded, joined: Joined) -> Array:
        of_x = _of_bytes(run, x, joined) if isinstance(x, Rounded) else as_half(run, (x,), joined)
        if of_x is not None:
            return of_x
        if joined.residual is not None:
            joined = joined._replace(residual=floats_of(run, joined.residual))
        y = joining(floats_of(run, x), joined._replace(into=None))
        return y if joined.into is None else run.call(to_bytes, y, *joined.into)

    def joining(x: Array, joined: Joined) -> Array:
        if joined.bare:
            return x
        if joined.norm is not None:
            return _norm_of(run, x, joined.norm, joined)
        more = joined.residual if joined.bias is None else joined.bias
        if joined.bias is not None and joined.residual is not None:
            x, more = run.call(np.add, x, joined.bias), joined.residual
        return run.call(_ended, x, more, joined.low, joined.high)

    return extend


def _of_bytes(run: Pass, x: Rounded, joined: Joined) -> Array | None:
    """Return bytes with joined steps, in one pass; None if no kernel does the steps."""
    norm, bias, residual, low, high, into, _ = joined
    if into == x.scale and joined._replace(into=None).bare:
        return x.bytes
    if norm is None and bias is None and isinstance(residual, Rounded):
        y: Array = run.call(summed, *x, *residual, low, high, into)
        return y
    return as_bytes(run, (x,), joined)


def as_half(run: Pass, parts: Sequence[Array | Rounded], joined: Joined) -> Array | None:
    """Return parts joined side by side in bfloat16, in one pass; None if no kernel does it."""
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    if not joined.half or joined.bias is not None or joined.residual is not None:
        return None
    if len(arrays) < len(parts) or not joinable(*arrays):
        return None
    if len(parts) == 1 and joined.bare:
        return None  # its readers can round it
    lanes = None if joined.norm is None else _float_lanes(run, joined.norm)
    y: Array = run.call(Joining(lanes, joined.low, joined.high), *arrays)
    return y


def _float_lanes(run: Pass, norm: Norm) -> Array:
    key = "float lanes", key_of(run, norm)
    lanes: Array = run.prepared.get(key, lambda: batchnorm.float_lanes(*_lanes(norm)))
    return lanes


def as_bytes(run: Pass, parts: Sequence[Array | Rounded], joined: Joined) -> Array | None:
    """Return parts joined side by side as bytes, in one pass; None if no kernel does the steps."""
    norm, bias, residual, low, high, into, _ = joined
    floats = any(isinstance(part, np.ndarray) for part in parts)
    # Limits would change a NaN's byte.
    if into is None or bias is not None or residual is not None or (floats and joined.limited):
        return None
    lanes = None if norm is None else _float_lanes(run, norm)
    scales = [part.scale if isinstance(part, Rounded) else None for part in parts]
    arrays = [part.bytes if isinstance(part, Rounded) else part for part in parts]
    y: Array = run.call(Rounding(scales, into, lanes, low, high), *arrays)
    return y


def _ended(x: Array, more: Array | None, low: float, high: float) -> Array:
    if more is not None:
        x = added(x, more)
    if (low, high) == (-np.inf, np.inf):
        return x
    return np.clip(x, low, high, out=empty(x.shape, x.dtype))


class _Lanes(NamedTuple):
    """A norm of each channel, in float64."""

    centre: Array
    scale: Array
    shift: Array


def _lanes(norm: Norm) -> _Lanes:
    _, scale, shift = batchnorm.affine(norm.variance, norm.eps, norm.weight, norm.bias)
    return _Lanes(norm.mean.astype(np.float64), scale, shift)


def _normalise(lanes: _Lanes, x: Array, residual: Array | None, low: float, high: float) -> Array:
    relu = low == 0 and high == np.inf
    y = batchnorm.normalise(x, *lanes, relu, residual)
    return y if relu or (low, high) == (-np.inf, np.inf) else np.clip(y, low, high, out=y)


def _added(result: Pending, other: Any) -> Pending | None:
    """Return a result that adds another array when it is written; None if that is impossible."""
    if result.joined.residual is not None or result.joined.limited or result.shape != other.shape:
        return None
    residual: Array | Rounded | None = None
    if result.gives_bytes and isinstance(other, Pending) and other.axes == result.axes:
        residual = other.rounded
    result.use()
    if residual is None:
        residual = result.in_memory_order(array_of(other))
    if residual is None or not result.waiting:  # ``other`` may have been computed from it
        return None
    return result.with_(result.joined._replace(residual=residual))


@rule(ops.add)
def add(run: Pass, a: Any, b: Any) -> Any:
    """Join a residual sum."""
    for one, other in ((b, a), (a, b)):
        if isinstance(one, Pending) and one.waiting and isinstance(other, (Tensor, np.ndarray)):
            joined = _with_bias(run, one, other) or _added(one, other)
            if joined is not None:
                return joined
    return _sum_of_bytes(run, a, b)


def _sum_of_bytes(run: Pass, a: Any, b: Any) -> Pending | None:
    """Return a pending sum of two results that are kept as bytes; None for other results."""
    if not isinstance(a, Pending) or not isinstance(b, Pending) or a.waiting or b.waiting:
        return None
    one, other = a.rounded, b.rounded
    if one is None or other is None or a.axes != b.axes or a.shape != b.shape:
        return None
    extend = extension(run)
    joined = Joined(residual=other)
    y = Pending(lambda joined: extend(one, joined), extend, a.memory_shape, np.float32, joined)
    y.axes, y.gives_bytes = a.axes, True
    return y


def _with_bias(run: Pass, result: Pending, other: Any) -> Pending | None:
    """Return an affine map with one of the model's vectors as its bias."""
    if isinstance(other, Pending) or not result.takes_bias or not result.joined.bare:
        return None
    vector = array_of(other)
    if vector.shape != result.shape[-1:] or vector.dtype != result.dtype:
        return None
    if not run.prepared.key(vector):
        return None
    return result.use().with_(result.joined._replace(bias=vector))


def _limits(x: Any, low: float, high: float) -> Any:
    if not isinstance(x, Pending) or not x.waiting or low > high:
        return None
    before = x.joined
    # Two limits, one after the other, are their intersection, unless it is empty.
    limits = max(before.low, low), min(before.high, high)
    if limits[0] > limits[1]:
        return None
    return x.use().with_(before._replace(low=limits[0], high=limits[1]))


rule(ops.relu)(lambda run, x: _limits(x, 0.0, np.inf))
rule(ops.relu6)(lambda run, x: _limits(x, 0.0, 6.0))


@rule(ops.clip)
def clip(run: Pass, x: Any, *, low: float | None = None, high: float | None = None) -> Any:
    """Join limits."""
    return _limits(x, -np.inf if low is None else low, np.inf if high is None else high)


@rule(ops.dropout)
def dropout(run: Pass, x: Any, *, rate: float, **draws: Any) -> Any:
    """Return a pending x unchanged if the rate is 0."""
    return x if rate == 0 and isinstance(x, Pending) else None


@rule(ops.transpose)
def transpose(run: Pass, x: Any, *, axes: tuple[int, ...]) -> Any:
    """Return a pending x with its axes in another order."""
    if not isinstance(x, Pending) or not (x.waiting or x.rounded):
        return None
    return x.turned(tuple(a % x.ndim for a in axes))
