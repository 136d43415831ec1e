"""Prediction: a model over samples of any kind, in memory or partitioned on a Dask cluster."""

from daskdl.predict.evaluation import evaluate
from daskdl.predict.kinds import predict
from daskdl.predict.predictor import Predictor

__all__ = ["Predictor", "evaluate", "predict"]
