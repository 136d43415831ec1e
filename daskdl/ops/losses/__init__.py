"""Losses: one number, the mean over the samples of a batch."""

from daskdl.ops.losses.binary import binary_cross_entropy, binary_cross_entropy_with_logits
from daskdl.ops.losses.crossentropy import cross_entropy, nll
from daskdl.ops.losses.ctc import ctc
from daskdl.ops.losses.divergence import gaussian_kl, kl_divergence
from daskdl.ops.losses.hinge import hinge, hinge_embedding, soft_margin
from daskdl.ops.losses.likelihood import gaussian_nll, poisson_nll
from daskdl.ops.losses.margins import multi_margin, multilabel_margin
from daskdl.ops.losses.overlap import dice
from daskdl.ops.losses.pairs import cosine_embedding, margin_ranking, triplet
from daskdl.ops.losses.precipitation import precipitation
from daskdl.ops.losses.reduction import loss
from daskdl.ops.losses.regression import (
    absolute_error,
    huber,
    percentage_error,
    smooth_l1,
    squared_error,
    squared_log_error,
)
from daskdl.ops.losses.ssim import ssim

__all__ = [
    "absolute_error",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_embedding",
    "cross_entropy",
    "ctc",
    "dice",
    "gaussian_kl",
    "gaussian_nll",
    "hinge",
    "hinge_embedding",
    "huber",
    "kl_divergence",
    "loss",
    "margin_ranking",
    "multi_margin",
    "multilabel_margin",
    "nll",
    "percentage_error",
    "poisson_nll",
    "precipitation",
    "smooth_l1",
    "soft_margin",
    "squared_error",
    "squared_log_error",
    "ssim",
    "triplet",
]
