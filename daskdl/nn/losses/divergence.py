"""Divergences between distributions."""

from __future__ import annotations

from typing import Any

from daskdl.nn.losses.loss import Loss, parts
from daskdl.ops import losses as ops
from daskdl.tensor import Tensor

__all__ = ["GaussianKLLoss", "KLDivLoss"]


class KLDivLoss(Loss):
    """Kullback-Leibler divergence of the target from the prediction, along the last axis.

    Parameters
    ----------
    log_target : bool
        Whether the target is log(p).

    Examples
    --------
    >>> prediction = np.array([[1.0, 2.0]], np.float32)
    >>> target = np.array([[1.5, 1.0]], np.float32)
    >>> round(float(nn.KLDivLoss()(prediction, target)), 4)
    -2.8918
    """

    def __init__(self, log_target: bool = False) -> None:
        self.log_target = log_target

    def forward(self, prediction: Any, target: Any, sample_weight: Any = None) -> Tensor:
        """Compare log(q) with p, or log(p), two arrays (N, ..., C)."""
        return ops.kl_divergence(
            prediction, target, log_target=self.log_target, sample_weight=sample_weight
        )


class GaussianKLLoss(Loss):
    """Divergence of normal distributions from the standard one: of a variational autoencoder.

    Examples
    --------
    >>> zeros = np.zeros((2, 3), np.float32)
    >>> float(nn.GaussianKLLoss()((zeros, zeros)))
    0.0
    """

    def forward(self, prediction: Any, target: Any = None, sample_weight: Any = None) -> Tensor:
        """Take (mean, log of the variance), two arrays (N, ..., D); there is no target."""
        return ops.gaussian_kl(*parts(self, prediction, 2), sample_weight=sample_weight)
