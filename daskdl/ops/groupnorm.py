"""Group normalisation: each sample's channels, normalised in groups over all of its pixels."""

from __future__ import annotations

import math

import numpy as np

from daskdl.errors import SettingsError, ShapeError
from daskdl.kernels.reduce import sum_over
from daskdl.ops.arguments import check_floats, check_like
from daskdl.tensor import Array, op


@op
def group_norm(  # type: ignore[no-untyped-def]
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
    """
    check_floats("group_norm", x)
    if x.ndim < 2:
        raise ShapeError(f"group_norm: expected x of shape (N, ..., C), found {x.shape}")
    n, channels = x.shape[0], x.shape[-1]
    if groups < 1 or channels % groups:
        raise SettingsError(
            f"group_norm: expected groups that divide the {channels} channels of x, found {groups}"
        )
    check_like("group_norm", x, (channels,), weight=weight, bias=bias)
    images = x.reshape(n, math.prod(x.shape[1:-1]), channels)
    size = max(1, images.shape[1] * channels // groups)
    factor = 1.0 if weight is None else weight

    def shared(sums: Array) -> Array:
        """Return the mean of a group, for each of its channels, from sums (N, C) over pixels."""
        means = sums.reshape(n, groups, channels // groups).sum(2) / size
        return means.repeat(channels // groups, 1)

    def row(numbers: Array) -> Array:
        return numbers.astype(x.dtype)[:, None]

    centred = images - row(shared(sum_over(images, (1,))))
    scale = 1 / np.sqrt(shared(sum_over(centred * centred, (1,))) + eps)
    y = centred * row(scale * factor)
    if bias is not None:
        y += bias

    def backward(dy: Array):  # type: ignore[no-untyped-def]
        d = dy.reshape(images.shape)
        first, second = sum_over(d, (1,)), sum_over(d * centred, (1,)) * scale

        def to_x() -> Array:
            dx = d * row(scale * factor)
            dx -= centred * row(scale**2 * shared(second * factor))
            dx -= row(scale * shared(first * factor))
            return dx.reshape(x.shape)

        return to_x, second.sum(0).astype(x.dtype), first.sum(0).astype(x.dtype)

    return y.reshape(x.shape), backward
