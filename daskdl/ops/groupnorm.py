"""Group normalisation: each sample's channels, normalised in groups over all of its pixels."""

from __future__ import annotations

import math

from daskdl.errors import SettingsError, ShapeError
from daskdl.ops.layernorm import layer_norm
from daskdl.ops.shape import reshape, transpose
from daskdl.tensor import Array, Tensor


def group_norm(
    x: Array | Tensor,
    weight: Array | Tensor | None,
    bias: Array | Tensor | None,
    *,
    groups: int,
    eps: float = 1e-5,
) -> Tensor:
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
    if len(x.shape) < 2:
        raise ShapeError(f"group_norm: expected x of shape (N, ..., C), found {tuple(x.shape)}")
    n, channels = x.shape[0], x.shape[-1]
    if groups < 1 or channels % groups:
        raise SettingsError(
            f"group_norm: expected groups that divide the {channels} channels of x, found {groups}"
        )
    pixels, share = math.prod(x.shape[1:-1]), channels // groups
    split = transpose(reshape(x, shape=(n, pixels, groups, share)), axes=(0, 2, 1, 3))
    even = layer_norm(split, None, None, axes=2, eps=eps)
    y: Tensor = reshape(transpose(even, axes=(0, 2, 1, 3)), shape=tuple(x.shape))
    if weight is not None:
        y = y * weight
    return y if bias is None else y + bias
