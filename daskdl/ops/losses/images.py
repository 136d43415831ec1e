"""Losses of images: overlap, borders, rain weighted by its rate, and boxes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from daskdl.errors import SettingsError, ShapeError, needed
from daskdl.kernels.detection import hard_negatives
from daskdl.kernels.losses import crossentropy as weighted
from daskdl.kernels.losses import regression as kernels
from daskdl.kernels.losses.softmax import cross_entropy, log_softmax
from daskdl.kernels.runtime.passes import one_pass
from daskdl.kernels.vectors.reduce import sum_over
from daskdl.ops.losses.reduction import (
    Parts,
    Summed,
    check_labels,
    integer_labels,
    loss,
    pair,
)
from daskdl.tensor import Array

__all__ = ["boundary", "dice", "multibox", "precipitation"]


@loss
def dice(prediction: Array, target: Array, *, smooth: float = 1.0, squared: bool = False) -> Parts:
    """1 - (2 sum(x t) + smooth) / (sum(x) + sum(t) + smooth), for each sample and channel.

    The sums are over all axes except the first and the last. A sample's loss is the mean over its
    channels; no gradient to the target.

    F. Milletari et al., V-Net, arXiv 1606.04797, with ``squared`` sums in the denominator; L. R.
    Dice, Measures of the Amount of Ecologic Association Between Species, Ecology 26 (1945).

    Parameters
    ----------
    prediction : array (N, ..., C)
        Probabilities.
    target : array of the same shape, from 0 to 1
    smooth : float
        Summand that makes the loss of an empty target finite.
    squared : bool
        Whether the sums in the denominator are of squares.
    """
    target = pair("dice", prediction, target)
    if prediction.ndim < 3:
        raise ShapeError(
            f"dice: expected shape (N, ..., C), three axes or more, found {prediction.shape}"
            "; add an axis for a single channel, x[..., None]"
        )
    axes = tuple(range(1, prediction.ndim - 1))
    above = 2 * sum_over(prediction * target, axes) + smooth  # (N, C)
    sizes = (x * x if squared else x for x in (prediction, target))
    below = sum(sum_over(size, axes) for size in sizes) + smooth

    def slope(s: Array) -> Array:
        spread = (len(prediction), *(1,) * len(axes), prediction.shape[-1])
        to_size = (s * above / (below * below)).astype(s.dtype).reshape(spread)
        to_shared = (-2 * s / below).astype(s.dtype).reshape(spread)
        result = target * to_shared
        result += prediction * (2 * to_size) if squared else to_size
        return result

    return 1 - above / below, (slope, None)


@loss
def boundary(logits: Array, labels: Array) -> Parts:
    """Mean of softmax(logits) times the signed distances to each class's border.

    A wrong pixel counts by its distance from the border. A class that covers no pixel of an image,
    or all of them, has no border and adds nothing.

    H. Kervadec et al., Boundary Loss for Highly Unbalanced Segmentation, arXiv 1812.07032.

    Parameters
    ----------
    logits : array (N, ..., C)
    labels : integer array (N, ...)
        Labels from 0.

    Raises
    ------
    MissingExtraError
        Without SciPy, which computes the distances.
    """
    labels, classes = integer_labels("boundary", labels, logits), logits.shape[-1]
    check_labels("boundary", labels, classes)
    distances = np.stack([_distances(labels == c) for c in range(classes)], -1, dtype=logits.dtype)
    shares, axes = np.exp(log_softmax(logits)), tuple(range(1, logits.ndim))

    def slope(s: Array) -> Array:
        weighted = distances * (s.reshape(-1, *(1,) * len(axes)) / math.prod(labels.shape[1:]))
        return shares * (weighted - (shares * weighted).sum(-1, keepdims=True))

    return sum_over(shares * distances, axes) / math.prod(labels.shape[1:]), (slope, None)


def _distances(masks: Array) -> Array:
    """Return distances to the border of masks (N, ...): at least 1 outside, at most 0 inside."""
    with needed("boundary: expected SciPy ({error}); pip install scipy"):
        from scipy.ndimage import distance_transform_edt as distance
    result = np.zeros(masks.shape)
    for mask, to in zip(masks, result, strict=True):
        if mask.any() and not mask.all():
            to[...] = np.where(mask, 1 - distance(mask), distance(~mask))
    return result


@loss
def precipitation(
    prediction: Array,
    target: Array,
    *,
    thresholds: Array,
    weights: Array,
    squared: float,
    absolute: float,
) -> Parts:
    """Squared and absolute error, weighted by the amount of rain; no gradient to the target.

    A pixel's weight is ``weights[k]``, k the number of ``thresholds`` that its target reaches.
    Pixels whose target is NaN (missing) add nothing. A sample's sum is divided by its number of
    pixels, including missing ones, so that a sample with few valid pixels weighs less.

    X. Shi et al., Deep Learning for Precipitation Nowcasting: A Benchmark and A New Model,
    arXiv 1706.03458, section 3.2.

    Parameters
    ----------
    prediction, target : arrays of one shape, (N, ...)
    thresholds : array (K,), increasing, in the target's unit
    weights : array (K + 1,)
    squared, absolute : float
        Factors of the two errors.

    Examples
    --------
    >>> prediction, target = np.array([[1.0, 4.0]]), np.array([[0.0, 6.0]])
    >>> settings = {"thresholds": np.array([2.0]), "weights": np.array([1.0, 5.0])}
    >>> float(precipitation(prediction, target, **settings, squared=1.0, absolute=1.0))
    16.0
    """
    target = pair("precipitation", prediction, target)
    if len(weights) != len(thresholds) + 1 or (np.diff(thresholds) < 0).any():
        raise SettingsError(
            "precipitation: expected increasing thresholds and one more weight than thresholds, "
            f"found {thresholds} and {weights}"
            "; sort the thresholds, and give the weight below the first one, too"
        )
    steps = np.concatenate([weights, thresholds])

    def settings(squared: Any, absolute: Any) -> Array:
        return np.array([squared, absolute, *steps], prediction.dtype)

    def sums(stretches: int) -> Array:
        factors = settings(squared, absolute)
        return kernels.sums(kernels.balanced, stretches, prediction, target, factors)

    def slope(s: Array) -> Array:
        factor = s if not s.ndim else s.dtype.type(1)
        factors = settings(2 * squared * factor, absolute * factor)
        (gradient,) = one_pass(kernels.balanced_back, prediction, target, settings=factors)
        return gradient if not s.ndim else np.multiply(gradient, s, out=gradient)

    return Summed(prediction.shape, sums), (slope, None)


@loss
def multibox(
    offsets: Array, logits: Array, classes: Array, target: Array, *, ratio: float = 3.0
) -> Parts:
    """Cross entropy of positives and hard negatives, and smooth L1 of the positives' offsets.

    Both sums of an image are divided by its number of positives, or by 1 without any. So an image's
    loss depends on the image alone, as in all losses here; SSD divides by the number of positives
    of the whole batch.

    W. Liu et al., SSD: Single Shot MultiBox Detector, arXiv 1512.02325, equations 1 to 3.

    Parameters
    ----------
    offsets : array (N, P, 4)
    logits : array (N, P, classes + 1)
        Logits of nothing, and of each class.
    classes : int64 (N, P)
        0 for nothing to find, see :func:`daskdl.kernels.detection.match`.
    target : array (N, P, 4)
        Offsets to find.
    ratio : float
        Number of negatives, those with the largest losses, for each positive.
    """
    classes, target = np.asarray(classes), np.asarray(target)
    shape = logits.shape[:-1]
    if logits.ndim != 3 or classes.shape != shape or not (
        offsets.shape == target.shape == (*shape, 4)
    ):  # fmt: skip
        raise ShapeError(
            "multibox: expected offsets and target (N, P, 4), logits (N, P, classes + 1) and "
            f"classes (N, P), found {offsets.shape}, {target.shape}, {logits.shape} and "
            f"{classes.shape}; match the boxes with the model's own priors"
        )
    positive = classes > 0
    rows, scales = cross_entropy(logits, classes)
    rows = rows.reshape(shape)
    chosen = positive | hard_negatives(rows, positive, ratio)
    shares = 1 / np.maximum(positive.sum(1), 1)
    difference = np.where(positive[..., None], offsets - target, 0)
    size = np.abs(difference)
    places = np.where(size < 1, 0.5 * size * size, size - 0.5).sum((1, 2), dtype=np.float64)
    values = shares * (np.where(chosen, rows, 0).sum(1) + places)

    def each(s: Array) -> Array:
        """Return the factor of each image's sums."""
        return np.broadcast_to(s.reshape(-1), len(shares)) * shares

    def to_offsets(s: Array) -> Any:
        return np.clip(difference, -1, 1) * each(s)[:, None, None].astype(offsets.dtype)

    def to_logits(s: Array) -> Any:
        return weighted.gradient(logits, classes, scales, (chosen * each(s)[:, None]).reshape(-1))

    return values, (to_offsets, to_logits, None, None)
