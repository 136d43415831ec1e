"""The multi-box loss: classes and places of the boxes that a detector's priors are to find."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl.errors import ShapeError
from daskdl.kernels.detection.matching import hard_negatives
from daskdl.kernels.losses import crossentropy as weighted
from daskdl.kernels.losses import softmax as kernels
from daskdl.ops.losses.reduction import Parts, loss
from daskdl.tensor import Array

__all__ = ["multibox"]


@loss
def multibox(
    offsets: Array, logits: Array, classes: Array, target: Array, *, ratio: float = 3.0
) -> Parts:
    """Cross entropy of positives and hard negatives, and smooth L1 of the positives' offsets.

    Of each image both sums are divided by its number of positives, or by 1 without any. So an
    image's loss depends on it alone, as that of all losses here; SSD divides by the number of
    positives of the whole batch.

    W. Liu et al., SSD: Single Shot MultiBox Detector, arXiv 1512.02325, equations 1 to 3.

    Parameters
    ----------
    offsets : array (N, P, 4)
    logits : array (N, P, classes + 1)
        Of nothing, and of each class.
    classes : int64 (N, P)
        0 where there is nothing to find; as :func:`daskdl.kernels.detection.matching.match`.
    target : array (N, P, 4)
        Offsets.
    ratio : float
        Negatives for each positive: those with the largest loss.

    Raises
    ------
    ShapeError
        When the arrays do not fit together.
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
    rows, scales = kernels.cross_entropy(logits, classes)
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
