"""Normalisations."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl import ops
from daskdl.kernels.norms.batchnorm import follow
from daskdl.nn.core.parameter import Buffer
from daskdl.nn.operators.table import (
    Call,
    Value,
    array,
    channels_last,
    channels_second,
    dtype_of,
    operator,
    shape_of,
)


@operator("BatchNormalization")
def batch_norm(
    call: Call, x: Value, scale: Value, bias: Value, mean: Value, variance: Value
) -> Value:
    """Normalise channels by given statistics; in training by the batch's, and update them."""
    eps, momentum = call.get("epsilon", 1e-5), call.get("momentum", 0.9)
    images = channels_last(x)
    dtype = dtype_of(x)
    old = tuple(array(v).astype(dtype, copy=False) for v in (mean, variance))
    scale, bias = (v if dtype_of(v) == dtype else ops.cast(v, dtype=dtype) for v in (scale, bias))
    if call.get("training_mode", 0):
        y, statistics = ops.batch_norm(images, scale, bias, eps=eps)
        new = (statistics.mean, statistics.variance)
        follows = [o * momentum + n * (1 - momentum) for o, n in zip(old, new, strict=True)]
        return channels_second(y), *(f.astype(dtype) for f in follows)
    if call.training and isinstance(mean, Buffer) and isinstance(variance, Buffer):
        y, statistics = ops.batch_norm(images, scale, bias, eps=eps)
        if statistics.rows:
            follow(mean.data, variance.data, statistics.mean, statistics.unbiased, 1 - momentum)
        return channels_second(y)
    return channels_second(ops.batch_norm_inference(images, old[0], old[1], scale, bias, eps=eps))


@operator("InstanceNormalization")
def instance_norm(call: Call, x: Value, scale: Value, bias: Value) -> Value:
    """Normalise each channel of each sample alone."""
    groups = shape_of(x)[1]
    eps = call.get("epsilon", 1e-5)
    return channels_second(ops.group_norm(channels_last(x), scale, bias, groups=groups, eps=eps))


@operator("GroupNormalization")
def group_norm(call: Call, x: Value, scale: Value, bias: Value) -> Value:
    """Normalise each sample's channels in groups; before version 21 a scale for each group."""
    channels, groups = shape_of(x)[1], call.get("num_groups")
    if shape_of(scale)[0] != channels:
        share = channels // groups
        scale, bias = (ops.repeat(v, times=share, axis=0) for v in (scale, bias))
    eps = call.get("epsilon", 1e-5)
    return channels_second(ops.group_norm(channels_last(x), scale, bias, groups=groups, eps=eps))


@operator("LayerNormalization")
def layer_norm(call: Call, x: Value, scale: Value, bias: Value = None) -> Value:
    """Normalise over the axes from ``axis`` on; also return the mean and 1 / deviation."""
    values, eps = array(x), call.get("epsilon", 1e-5)
    first = call.get("axis", -1) % values.ndim
    axes = tuple(range(first, values.ndim))
    shape = values.shape[first:]
    if (
        call.results == 1
        and shape_of(scale) == shape
        and array(bias if bias is not None else scale).shape == shape
    ):
        return ops.layer_norm(x, scale, bias, axes=len(axes), eps=eps)
    mean = ops.mean(x, axis=axes, keepdims=True)
    centred = ops.subtract(x, mean)
    deviation = ops.sqrt(ops.mean(ops.square(centred), axis=axes, keepdims=True) + eps)
    y = ops.multiply(ops.divide(centred, deviation), scale)
    y = y if bias is None else ops.add(y, bias)
    return y, mean, ops.divide(1.0, deviation)


@operator("SimplifiedLayerNormalization", keys="axis epsilon stash_type")
@operator("RMSNormalization")
def rms_norm(call: Call, x: Value, scale: Value) -> Value:
    """Divide by the root of the mean square over the axes from ``axis`` on (arXiv 1910.07467)."""
    ndim = len(shape_of(x))
    axes = tuple(range(call.get("axis", -1) % ndim, ndim))
    square = ops.mean(ops.square(x), axis=axes, keepdims=True)
    return ops.multiply(ops.divide(x, ops.sqrt(square + call.get("epsilon", 1e-5))), scale)


@operator("LRN")
def local_response_norm(call: Call, x: Value) -> Value:
    """Divide by a power of the squares of neighbouring channels."""
    y = ops.local_response_norm(
        channels_last(x),
        size=call.get("size"),
        alpha=call.get("alpha", 1e-4),
        beta=call.get("beta", 0.75),
        k=call.get("bias", 1.0),
    )
    return channels_second(y)


@operator("LpNormalization")
def lp_normalization(call: Call, x: Value) -> Value:
    """Divide by the 1- or 2-norm along an axis; 0 where the norm is 0."""
    axis, values = call.get("axis", -1), array(x)
    if call.get("p", 2) == 1:
        norm = ops.sum(ops.abs(x), axis=axis, keepdims=True)
    else:
        norm = ops.sqrt(ops.sum(ops.square(x), axis=axis, keepdims=True))
    none = norm.data == 0
    return ops.divide(x, ops.where(none, np.ones((), values.dtype), norm))


@operator("MeanVarianceNormalization")
def mean_variance_normalization(call: Call, x: Value) -> Value:
    """Normalise to mean 0 and variance 1 over axes."""
    axes: Any = tuple(call.get("axes", (0, 2, 3)))
    centred = ops.subtract(x, ops.mean(x, axis=axes, keepdims=True))
    deviation = ops.sqrt(ops.mean(ops.square(centred), axis=axes, keepdims=True))
    return ops.divide(centred, deviation + 1e-9)
