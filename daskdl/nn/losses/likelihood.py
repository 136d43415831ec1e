"""Losses that are negative logarithms of a likelihood."""

from __future__ import annotations

from typing import Any

from daskdl.nn.losses.loss import Loss, parts
from daskdl.ops import losses as ops
from daskdl.tensor import Tensor

__all__ = ["GaussianNLLLoss", "PoissonNLLLoss"]


class PoissonNLLLoss(Loss):
    """Counts after Poisson.

    Parameters
    ----------
    log : bool
        Whether the prediction is the logarithm of the rate.
    full : bool
        Whether to add Stirling's approximation of log(target!).
    eps : float
        Added to a rate before its logarithm is taken.

    Examples
    --------
    >>> prediction = np.array([[1.0, 2.0]], np.float32)
    >>> target = np.array([[1.5, 1.0]], np.float32)
    >>> round(float(nn.PoissonNLLLoss()(prediction, target)), 4)
    3.3037
    """

    def __init__(self, log: bool = True, full: bool = False, eps: float = 1e-8) -> None:
        self.log = log
        self.full = full
        self.eps = eps

    def forward(self, prediction: Any, target: Any, sample_weight: Any = None) -> Tensor:
        """Compare two arrays of one shape."""
        return ops.poisson_nll(
            prediction,
            target,
            log=self.log,
            full=self.full,
            eps=self.eps,
            sample_weight=sample_weight,
        )


class GaussianNLLLoss(Loss):
    """Numbers after Gauss, of which mean and variance are predicted.

    Parameters
    ----------
    eps : float
        A variance below it is taken for it.

    Examples
    --------
    >>> one = np.ones((2, 1), np.float32)
    >>> float(nn.GaussianNLLLoss()((one, one), 2 * one))
    0.5
    """

    def __init__(self, eps: float = 1e-6) -> None:
        self.eps = eps

    def forward(self, prediction: Any, target: Any, sample_weight: Any = None) -> Tensor:
        """Compare (mean, variance) with the target, three arrays of one shape."""
        return ops.gaussian_nll(
            *parts(self, prediction, 2), target, eps=self.eps, sample_weight=sample_weight
        )
