"""Losses of two or three embeddings: ranking, cosine, triplet."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from daskdl.errors import SettingsError, ShapeError
from daskdl.kernels.vectors import functions
from daskdl.ops.losses.reduction import Parts, along_last, loss, pair, signs
from daskdl.tensor import Array

__all__ = ["cosine_embedding", "margin_ranking", "triplet"]

#: Added to squared lengths, so that the length of zeros has an inverse; PyTorch's number.
EPS = 1e-12


@loss
def margin_ranking(first: Array, second: Array, target: Array, *, margin: float = 0.0) -> Parts:
    """max(0, margin - t (first - second)); t is 1 where the first has to be larger, else -1.

    Parameters
    ----------
    first, second : arrays of one shape, (N, ...)
    target : array of the same shape, of -1 and 1
    """
    second = pair("margin_ranking", first, second)
    target = signs("margin_ranking", target, first.shape, first.dtype)
    short = margin - target * (first - second)
    slope = target * (short > 0)
    return np.maximum(short, 0), (lambda s: -s * slope, lambda s: s * slope, None)


@loss
def cosine_embedding(first: Array, second: Array, target: Array, *, margin: float = 0.0) -> Parts:
    """1 - cos where t is 1; max(0, cos - margin) where it is -1.

    Parameters
    ----------
    first, second : arrays (N, ..., D)
        Vectors along the last axis; cos is the cosine of the angle between them.
    target : array (N, ...), of -1 and 1
    """
    second = pair("cosine_embedding", first, second)
    target = signs("cosine_embedding", target, first.shape[:-1], first.dtype)
    squares = [np.einsum("...d,...d->...", x, x) + first.dtype.type(EPS) for x in (first, second)]
    inverse = 1 / np.sqrt(squares[0] * squares[1])
    cosine = np.einsum("...d,...d->...", first, second) * inverse
    values = np.where(target > 0, 1 - cosine, np.maximum(cosine - margin, 0))

    def towards(x: Array, other: Array, square: Array, s: Array) -> Array:
        # the slope to the cosine, times (other / (|x| |other|) - cosine x / |x|²)
        slope = s * np.where(target > 0, -1, (cosine > margin).astype(first.dtype))
        return along_last(slope * inverse) * other - along_last(slope * cosine / square) * x

    return values, (
        lambda s: towards(first, second, squares[0], s),
        lambda s: towards(second, first, squares[1], s),
        None,
    )


@loss
def triplet(
    anchor: Array,
    positive: Array,
    negative: Array,
    *,
    margin: float = 1.0,
    p: float = 2.0,
    swap: bool = False,
    eps: float = 1e-6,
) -> Parts:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), d the p-norm of a - b + eps.

    V. Balntas et al., Learning shallow convolutional feature descriptors with triplet losses,
    BMVC 2016.

    Parameters
    ----------
    anchor, positive, negative : arrays of one shape, (N, ..., D)
    p : float, at least 1
    swap : bool
        Whether the negative's distance is the smaller one of those to the anchor and the positive.
    """
    if not 1 <= p < math.inf:
        raise SettingsError(f"triplet: expected p >= 1 and finite, found {p}")
    if anchor.ndim < 2:
        raise ShapeError(f"triplet: expected arrays of shape (N, ..., D), found {anchor.shape}")
    positive, negative = (pair("triplet", anchor, x) for x in (positive, negative))
    near, far = anchor - positive + eps, anchor - negative + eps
    d_near, d_far = _norm(near, p), _norm(far, p)
    swapped: Any = None
    if swap:
        other = positive - negative + eps
        d_other = _norm(other, p)
        swapped = d_other < d_far
        far = np.where(along_last(swapped), other, far)
        d_far = np.where(swapped, d_other, d_far)
    short = d_near - d_far + margin

    @functools.cache
    def directions() -> tuple[Array, Array, Array]:
        """Return the slopes to the near distance, and to the far one from anchor and positive."""
        active = short > 0
        to_near, to_far = _norm_slope(near, d_near, p, active), _norm_slope(far, d_far, p, active)
        if swapped is None:
            return to_near, to_far, np.zeros((), to_far.dtype)
        return (
            to_near,
            np.where(along_last(~swapped), to_far, 0),
            np.where(along_last(swapped), to_far, 0),
        )

    def to_anchor(s: Array) -> Array:
        to_near, from_anchor, _ = directions()
        return along_last(s) * (to_near - from_anchor)

    def to_positive(s: Array) -> Array:
        to_near, _, from_positive = directions()
        return along_last(s) * (-to_near - from_positive)

    def to_negative(s: Array) -> Array:
        _, from_anchor, from_positive = directions()
        return along_last(s) * (from_anchor + from_positive)

    return np.maximum(short, 0), (to_anchor, to_positive, to_negative)


def _norm(x: Array, p: float) -> Array:
    if p == 2:
        return np.sqrt(np.einsum("...d,...d->...", x, x))
    return functions.power(functions.power(np.abs(x), p).sum(-1), 1 / p)


def _norm_slope(x: Array, norm: Array, p: float, active: Array) -> Array:
    """Return the slope of the norm to x; zeros where the norm is 0 and in inactive rows."""
    with np.errstate(divide="ignore"):
        inverse = np.where(active & (norm > 0), 1 / norm, 0)
    ratio = x * along_last(inverse)
    return ratio if p == 2 else np.sign(ratio) * functions.power(np.abs(ratio), p - 1)
