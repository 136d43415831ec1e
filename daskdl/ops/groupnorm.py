"""Group normalisation: each sample's channels, normalised in groups over all of its pixels."""

from __future__ import annotations

import math

import numpy as np

from daskdl.errors import SettingsError, ShapeError
from daskdl.kernels.norms import groupnorm as kernels
from daskdl.ops.arguments import check_floats, check_like
from daskdl.tensor import Array, op

__all__ = ["group_norm"]


@op
def group_norm(
    x: Array,
    weight: Array | None,
    bias: Array | None,
    *,
    groups: int,
    eps: float = 1e-5,
):
    """Make each group of a sample's channels have mean 0 and variance 1, then scale and shift.

    Parameters
    ----------
    x : array (N, ..., C), float32 or float64
    weight, bias : arrays (C,), optional
    groups : int
        They share the channels out; one for each channel is instance normalisation.
    eps : float
        Is added to the variance.

    Returns
    -------
    array of x's shape

    References
    ----------
    Y. Wu and K. He, Group Normalization, arXiv 1803.08494.

    Examples
    --------
    >>> x = np.ones((2, 6, 4, 3), np.float32)
    >>> ops.group_norm(x, None, None, groups=3).shape
    (2, 6, 4, 3)
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
