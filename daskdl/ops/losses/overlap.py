"""Dice: one minus the overlap of two sets of pixels, for segmentation."""

from __future__ import annotations

import numpy as np

from daskdl.errors import ShapeError
from daskdl.ops.losses.reduction import Parts, loss, pair
from daskdl.tensor import Array


@loss
def dice(prediction: Array, target: Array, *, smooth: float = 1.0, squared: bool = False) -> Parts:
    """1 - (2 sum(x t) + smooth) / (sum(x) + sum(t) + smooth), of each sample and channel.

    The sums are over all axes but the first and the last. A sample's number is the mean over its
    channels; no gradient to the target.

    F. Milletari et al., V-Net, arXiv 1606.04797, which has ``squared`` sums below; L. R. Dice,
    Measures of the Amount of Ecologic Association Between Species, Ecology 26 (1945).

    Parameters
    ----------
    prediction : array (N, ..., C)
        Probabilities.
    target : array of the same shape, from 0 to 1
    smooth : float
        What makes the loss of an empty target finite.
    squared : bool
        Whether the sums below the line are of squares.

    Raises
    ------
    ShapeError
        When the shapes differ, or have fewer than three axes.
    """
    target = pair("dice", prediction, target)
    if prediction.ndim < 3:
        raise ShapeError(
            f"dice: expected shape (N, ..., C), three axes or more, found {prediction.shape}"
        )
    axes = tuple(range(1, prediction.ndim - 1))
    power = 2 if squared else 1
    above = 2 * (prediction * target).sum(axes, keepdims=True) + smooth
    below = (prediction**power + target**power).sum(axes, keepdims=True) + smooth

    def slope(s: Array) -> Array:
        s = s.reshape(-1, *(1,) * (prediction.ndim - 1)) if s.ndim else s
        size = 2 * prediction if squared else np.ones_like(prediction)
        return s * (above * size / below - 2 * target) / below

    values = 1 - above / below
    return values.reshape(len(values), -1), (slope, None)
