"""Losses of images: borders, overlap, similarity, and errors weighted by the rain rate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from daskdl.errors import ShapeError
from daskdl.nn.losses.loss import OperationLoss
from daskdl.ops import losses as ops

__all__ = ["BoundaryLoss", "DiceLoss", "PrecipitationLoss", "SSIMLoss"]


class BoundaryLoss(OperationLoss, operation=ops.boundary):
    """Probability on the wrong side of a class's border, times its distance (H. Kervadec, 2019).

    Compares logits (N, ..., C) with labels (N, ...) from 0; add it to another loss, since it
    ignores a class that is missing. Needs SciPy.

    Examples
    --------
    >>> labels = np.array([[0, 0, 1, 1]])
    >>> right = 50 * np.eye(2, dtype=np.float32)[labels]
    >>> float(nn.BoundaryLoss()(right, labels)), float(nn.BoundaryLoss()(-right, labels))
    (-0.5, 1.5)
    """


class DiceLoss(OperationLoss, operation=ops.dice):
    """One minus the Dice coefficient: twice the overlap of prediction and target over their sum.

    Compares two arrays (N, ..., C) of numbers from 0 to 1.

    Parameters
    ----------
    smooth : float
        Added to numerator and denominator, so that the loss of an empty target is finite.
    squared : bool
        Whether the sum is of squares, as in F. Milletari et al., arXiv 1606.04797.

    Examples
    --------
    >>> mask = np.array([[[1], [0]]], np.float32)
    >>> float(nn.DiceLoss()(mask, mask))
    0.0
    """

    smooth: float = 1.0
    squared: bool = False


class PrecipitationLoss(OperationLoss, operation=ops.precipitation, value=1.375):
    """Squared plus absolute error, weighted by the rain rate; missing targets do not count.

    Compares two arrays of one shape; NaN in the target means missing.

    X. Shi et al., arXiv 1706.03458 (balanced MSE and MAE).

    Parameters
    ----------
    thresholds : increasing numbers, in the unit of the target
    weights : one more number than thresholds
        Weight of a pixel below the first threshold, between the first two, and so on.
    squared, absolute : float
        Factors of the two errors.
    """

    def __init__(
        self,
        thresholds: Sequence[float] = (2, 5, 10, 30),
        weights: Sequence[float] = (1, 2, 5, 10, 30),
        squared: float = 1.0,
        absolute: float = 1.0,
    ) -> None:
        if len(weights) != len(thresholds) + 1 or list(thresholds) != sorted(thresholds):
            raise ShapeError(
                "PrecipitationLoss: expected increasing thresholds and one more weight than "
                f"thresholds, found {list(thresholds)} and {list(weights)}"
                "; sort the thresholds, and give the weight below the first one, too"
            )
        self.thresholds = np.asarray(thresholds, np.float32)
        self.weights = np.asarray(weights, np.float32)
        self.squared, self.absolute = squared, absolute


class SSIMLoss(OperationLoss, operation=ops.ssim):
    """1 - structural similarity (Z. Wang et al., 2004) of two images.

    Compares two arrays (N, ..., H, W, C).

    Parameters
    ----------
    data_range : float
        Difference of the largest and the smallest possible number.
    window : int
        Odd number of pixels across.
    sigma : float
        Width of the Gaussian, in pixels.

    Examples
    --------
    >>> image = np.random.default_rng(0).random((1, 16, 16, 1), np.float32)
    >>> round(abs(float(nn.SSIMLoss()(image, image))), 4)
    0.0
    """

    data_range: float = 1.0
    window: int = 11
    sigma: float = 1.5
