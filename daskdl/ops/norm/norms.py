"""Norms of single samples: layer, group, L2 and local response."""

from __future__ import annotations

import math

import numpy as np

from daskdl.errors import SettingsError, ShapeError
from daskdl.kernels.norms import groupnorm as kernels
from daskdl.kernels.norms import l2norm as l2norm_kernel
from daskdl.kernels.norms import layernorm as layernorm_kernel
from daskdl.kernels.norms import lrn as lrn_kernel
from daskdl.ops.arguments import check_floats, check_like
from daskdl.tensor import Array, op

__all__ = [
    "group_norm",
    "layer_norm",
    "local_response_norm",
    "normalize",
]


@op
def layer_norm(
    x: Array,
    weight: Array | None,
    bias: Array | None,
    *,
    axes: int = 1,
    eps: float = 1e-5,
):
    """Normalise each sample to mean 0 and variance 1 over its last axes, then scale and shift it.

    Parameters
    ----------
    x : array (..., C), float32 or float64
    weight, bias : arrays of the last axes' shape, optional
        Scale and shift.
    axes : int
        Number of last axes that are normalised together.
    eps : float
        Added to the variance.

    Returns
    -------
    array of x's shape

    References
    ----------
    J. Ba et al., Layer Normalization, arXiv 1607.06450.

    Examples
    --------
    >>> ops.layer_norm(np.array([[1.0, 3.0]]), None, None).data.round(3)
    array([[-1.,  1.]])
    """
    check_floats("layer_norm", x)
    if not 1 <= axes <= x.ndim:
        raise SettingsError(
            f"layer_norm: axes: expected 1 to {x.ndim} for x of shape {x.shape}, found {axes}"
        )
    shape = x.shape[-axes:]
    check_like("layer_norm", x, shape, weight=weight, bias=bias)
    size = int(np.prod(shape))
    rows = x.reshape(-1, size) if x.size else x.reshape(0, size)
    scale = np.ones(size, x.dtype) if weight is None else weight.reshape(size)
    shift = np.zeros(size, x.dtype) if bias is None else bias.reshape(size)
    y, scales = layernorm_kernel.forward(rows, scale, shift, eps)

    def backward(dy: Array):
        dx, totals = layernorm_kernel.backward(dy.reshape(rows.shape), rows, scale, scales)
        d_weight, d_bias = totals.astype(x.dtype).reshape(2, *shape)
        return dx.reshape(x.shape), d_weight, d_bias

    return y.reshape(x.shape), backward


@op
def group_norm(
    x: Array,
    weight: Array | None,
    bias: Array | None,
    *,
    groups: int,
    eps: float = 1e-5,
):
    """Normalise each group of a sample's channels to mean 0 and variance 1, then scale and shift.

    Parameters
    ----------
    x : array (N, ..., C), float32 or float64
    weight, bias : arrays (C,), optional
    groups : int
        Number of groups of channels; one for each channel is instance normalisation.
    eps : float
        Added to the variance.

    Returns
    -------
    array of x's shape

    References
    ----------
    Y. Wu and K. He, Group Normalization, arXiv 1803.08494.
    """
    check_floats("group_norm", x)
    if x.ndim < 2:
        raise ShapeError(f"group_norm: expected x of shape (N, ..., C), found {x.shape}")
    n, channels = x.shape[0], x.shape[-1]
    if groups < 1 or channels % groups:
        raise SettingsError(
            f"group_norm: expected groups that divide the {channels} channels of x, found {groups}"
            "; take a divisor"
        )
    check_like("group_norm", x, (channels,), weight=weight, bias=bias)
    images = x.reshape(n, math.prod(x.shape[1:-1]), channels)
    gain = np.ones(channels, x.dtype) if weight is None else weight
    shift = np.zeros(channels, x.dtype) if bias is None else bias
    y, statistics = kernels.forward(images, gain, shift, groups, eps)

    def backward(dy: Array):
        dx, sums = kernels.backward(dy.reshape(images.shape), images, gain, statistics)
        return dx.reshape(x.shape), sums[0].astype(x.dtype), sums[1].astype(x.dtype)

    return y.reshape(x.shape), backward


@op
def normalize(x: Array, *, eps: float = 1e-12):
    """Divide each vector along the last axis by its Euclidean length, as PyTorch's ``normalize``.

    Parameters
    ----------
    x : array (..., C), float32 or float64
    eps : float
        Least divisor.

    Returns
    -------
    array (..., C)

    Examples
    --------
    >>> ops.normalize(np.array([0.25, 0.5, 0.75], np.float32)).data.round(3)
    array([0.267, 0.535, 0.802], dtype=float32)
    """
    check_floats("normalize", x)
    rows = x.reshape(-1, x.shape[-1]) if x.size else x.reshape(0, x.shape[-1])
    y, lengths = l2norm_kernel.forward(rows, eps)

    def backward(dy: Array):
        return (l2norm_kernel.backward(dy.reshape(y.shape), y, lengths, eps).reshape(x.shape),)

    return y.reshape(x.shape), backward


@op
def local_response_norm(
    x: Array, *, size: int = 5, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
):
    """Divide each number by a power of the sum of squares of neighbouring channels.

    ``y = x * (k + alpha / size * sum of squares) ** -beta``, the sum over ``size`` channels around
    each; channels beyond the edges count as 0. This is the formula of PyTorch and Caffe.

    Parameters
    ----------
    x : array (..., C), float32 or float64
    size : int
        Channels of a window.
    alpha, beta, k : float

    Returns
    -------
    array (..., C)

    References
    ----------
    A. Krizhevsky et al., ImageNet Classification with Deep Convolutional Neural Networks, NIPS
    2012, section 3.3 (where alpha is not divided by the size).

    Examples
    --------
    >>> ops.local_response_norm(np.array([-1.0, 0.5, 2.0], np.float32)).data.round(3)
    array([-1. ,  0.5,  2. ], dtype=float32)
    """
    check_floats("local_response_norm", x)
    if size < 1 or size != int(size):
        raise SettingsError(
            f"local_response_norm: size: expected a whole number of at least 1, found {size}"
        )
    size = int(size)
    response = lrn_kernel.Response(size, alpha, beta, k)
    rows = x.reshape(-1, x.shape[-1]) if x.size else x.reshape(0, x.shape[-1])
    y = lrn_kernel.forward(rows, response)

    def backward(dy: Array):
        return (lrn_kernel.backward(dy.reshape(rows.shape), rows, response).reshape(x.shape),)

    return y.reshape(x.shape), backward
