"""Losses of predicted numbers and distributions: errors, likelihoods and divergences."""

from __future__ import annotations

from daskdl.nn.losses.loss import OperationLoss
from daskdl.ops import losses as ops

__all__ = [
    "GaussianKLLoss",
    "GaussianNLLLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MAPELoss",
    "MSELoss",
    "MSLELoss",
    "PoissonNLLLoss",
    "SmoothL1Loss",
]


class MSELoss(OperationLoss, operation=ops.squared_error, value=0.625):
    """Mean squared error."""


class L1Loss(OperationLoss, operation=ops.absolute_error, value=0.75):
    """Mean absolute error."""


class HuberLoss(OperationLoss, operation=ops.huber, value=0.3125):
    """Half the squared error up to ``delta``, then a straight line."""

    delta: float = 1.0


class SmoothL1Loss(OperationLoss, operation=ops.smooth_l1, value=0.3125):
    """Absolute error whose corner is rounded within ``beta``."""

    beta: float = 1.0


class MAPELoss(OperationLoss, operation=ops.percentage_error, value=66.6667):
    """Mean absolute error in percent of the target."""


class MSLELoss(OperationLoss, operation=ops.squared_log_error, value=0.1071):
    """Mean squared error of log(1 + x); negative numbers count as 0."""


class PoissonNLLLoss(OperationLoss, operation=ops.poisson_nll, value=3.3037):
    """Negative log likelihood of counts (Poisson).

    Parameters
    ----------
    log : bool
        Whether the prediction is the logarithm of the rate.
    full : bool
        Whether to add Stirling's approximation of log(target!).
    eps : float
        Added to a rate before its logarithm.
    """

    log: bool = True
    full: bool = False
    eps: float = 1e-8


class GaussianNLLLoss(OperationLoss, operation=ops.gaussian_nll, several=2):
    """Negative log likelihood of normal distributions with predicted mean and variance.

    Compares (mean, variance) with the target, three arrays of one shape.

    Parameters
    ----------
    eps : float
        Least variance.

    Examples
    --------
    >>> one = np.ones((2, 1), np.float32)
    >>> float(nn.GaussianNLLLoss()((one, one), 2 * one))
    0.5
    """

    eps: float = 1e-6


class KLDivLoss(OperationLoss, operation=ops.kl_divergence, value=-2.8918):
    """Kullback-Leibler divergence of the target from the prediction, along the last axis.

    Compares log(q) with p, or log(p), two arrays (N, ..., C).

    Parameters
    ----------
    log_target : bool
        Whether the target is log(p).
    """

    log_target: bool = False


class GaussianKLLoss(OperationLoss, operation=ops.gaussian_kl, several=2, targets=0):
    """Divergence of normal distributions from the standard normal, for variational autoencoders.

    A prediction is (mean, log of the variance), arrays (N, ..., D); there is no target.

    Examples
    --------
    >>> zeros = np.zeros((2, 3), np.float32)
    >>> float(nn.GaussianKLLoss()((zeros, zeros)))
    0.0
    """
