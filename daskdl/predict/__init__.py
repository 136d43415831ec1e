"""Prediction: a model over samples of any kind, in memory or partitioned on a Dask cluster."""

from daskdl.predict.evaluation import evaluate
from daskdl.predict.kinds import predict
from daskdl.predict.predictor import Predictor
from daskdl.predict.scenes.boxes import detect_scene
from daskdl.predict.scenes.geojson import outlines, rasterized
from daskdl.predict.scenes.labels import Objects, label_scene

__all__ = [
    "Objects",
    "Predictor",
    "detect_scene",
    "evaluate",
    "label_scene",
    "outlines",
    "predict",
    "rasterized",
]
