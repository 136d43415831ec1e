"""Metrics: statistics that merge exactly over batches and shards, and their values."""

from daskdl.metrics.accuracy import Accuracy, BinaryAccuracy, TopKAccuracy
from daskdl.metrics.confusion import F1, IoU, Precision, Recall
from daskdl.metrics.curves import PRAUC, ROCAUC
from daskdl.metrics.detection import MeanAveragePrecision
from daskdl.metrics.mean import Mean, MeanAbsoluteError, MeanSquaredError, Output
from daskdl.metrics.metric import Metric
from daskdl.metrics.ranking import NDCG, HitRatio

__all__ = [
    "F1",
    "NDCG",
    "PRAUC",
    "ROCAUC",
    "Accuracy",
    "BinaryAccuracy",
    "HitRatio",
    "IoU",
    "Mean",
    "MeanAbsoluteError",
    "MeanAveragePrecision",
    "MeanSquaredError",
    "Metric",
    "Output",
    "Precision",
    "Recall",
    "TopKAccuracy",
]
