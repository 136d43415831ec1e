"""Dice: one minus the overlap of two sets of pixels, for segmentation."""

from __future__ import annotations

from daskdl.errors import ShapeError
from daskdl.kernels.vectors.reduce import sum_over
from daskdl.ops.losses.reduction import Parts, loss, pair
from daskdl.tensor import Array

__all__ = ["dice"]


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
