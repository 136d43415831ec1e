"""Similarity of images."""

from __future__ import annotations

from typing import Any

from daskdl.nn.losses.loss import Loss
from daskdl.ops import losses as ops
from daskdl.tensor import Tensor

__all__ = ["SSIMLoss"]


class SSIMLoss(Loss):
    """1 - structural similarity (Z. Wang et al., 2004) of two images.

    Parameters
    ----------
    data_range : float
        Difference of the largest and the smallest possible number.
    window : int
        Odd number of pixels across.
    sigma : float
        Of the Gaussian, in pixels.

    Examples
    --------
    >>> image = np.random.default_rng(0).random((1, 16, 16, 1), np.float32)
    >>> round(abs(float(nn.SSIMLoss()(image, image))), 4)
    0.0
    """

    def __init__(self, data_range: float = 1.0, window: int = 11, sigma: float = 1.5) -> None:
        self.data_range = data_range
        self.window = window
        self.sigma = sigma

    def forward(self, prediction: Any, target: Any, sample_weight: Any = None) -> Tensor:
        """Compare two arrays (N, ..., H, W, C)."""
        return ops.ssim(
            prediction,
            target,
            data_range=self.data_range,
            window=self.window,
            sigma=self.sigma,
            sample_weight=sample_weight,
        )
