"""Losses as modules: loss(prediction, target, sample_weight) is the mean over samples."""

from daskdl.nn.losses.binary import BCELoss, BCEWithLogitsLoss, MultiLabelSoftMarginLoss
from daskdl.nn.losses.crossentropy import CrossEntropyLoss, NLLLoss
from daskdl.nn.losses.ctc import CTCLoss
from daskdl.nn.losses.divergence import GaussianKLLoss, KLDivLoss
from daskdl.nn.losses.hinge import HingeEmbeddingLoss, HingeLoss, SoftMarginLoss
from daskdl.nn.losses.likelihood import GaussianNLLLoss, PoissonNLLLoss
from daskdl.nn.losses.loss import Loss
from daskdl.nn.losses.margins import MultiLabelMarginLoss, MultiMarginLoss
from daskdl.nn.losses.multi import MultiLoss
from daskdl.nn.losses.overlap import DiceLoss
from daskdl.nn.losses.pairs import CosineEmbeddingLoss, MarginRankingLoss, TripletMarginLoss
from daskdl.nn.losses.precipitation import PrecipitationLoss
from daskdl.nn.losses.regression import HuberLoss, L1Loss, MAPELoss, MSELoss, MSLELoss, SmoothL1Loss
from daskdl.nn.losses.ssim import SSIMLoss

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CosineEmbeddingLoss",
    "CrossEntropyLoss",
    "DiceLoss",
    "GaussianKLLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HingeLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "Loss",
    "MAPELoss",
    "MSELoss",
    "MSLELoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "PoissonNLLLoss",
    "PrecipitationLoss",
    "SSIMLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
]
