"""Trial: one sample runs through a model and its measures, so that mistakes show early."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from daskdl.cluster.failures import users_line
from daskdl.data.functions import name_of
from daskdl.data.nested import has, nested
from daskdl.data.ragged import PAD
from daskdl.errors import DaskdlError, DataError, TrainingError
from daskdl.nn import Module
from daskdl.nn.core.arguments import as_inputs, call, parts_of
from daskdl.predict.measures import Measures
from daskdl.tensor import Tensor, no_grad


def check_evaluation(
    where: str, model: Module, measures: Measures, batch: Mapping[str, Any]
) -> None:
    """Pass one sample through a model in inference, its loss and its metrics.

    Raises DataError for samples without x or y, and SettingsError for weights that the loss or a
    metric does not take. The model's own errors are not changed, such as a ShapeError that names
    the layer. Any other exception, and a loss that is not one number, is a TrainingError.
    """
    check_names(where, batch)
    check_words(where, batch)
    measures.check_weight(where, batch)
    with naming_shapes(model, batch), no_grad():
        prediction = call(model, as_inputs(nested(batch, "x")))
        check_loss(measures, measures.compare(prediction, batch))
        check_metrics(measures, prediction, batch)


def check_names(where: str, batch: Mapping[str, Any]) -> None:
    """Raise a DataError for samples without x or y."""
    if not has(batch, "x") or not has(batch, "y"):
        raise DataError(
            f"{where}: expected samples with x and y, found {sorted(batch)}; name the arrays when "
            "the SampleSet is made, as in from_arrays(x=..., y=...)"
        )


def check_words(where: str, batch: Mapping[str, Any]) -> None:
    """Raise a DataError for a target of words, and for arrays that Dask has turned into texts."""
    for name in ("x", "y"):
        for part in map(np.asarray, parts_of(nested(batch, name))):
            kind, first = part.dtype.kind, part.ravel()[0] if part.size else 0
            if not (kind in "TUS" or (kind == "O" and isinstance(first, str))):
                continue
            if str(first).startswith("["):
                raise DataError(
                    f"{where}: expected {name} as numbers, found texts such as "
                    f"{str(first)[:30]!r}; Dask makes texts of lists and arrays: say "
                    "dask.config.set({'dataframe.convert-string': False}) before the frame is made"
                )
            if name == "y":
                raise DataError(
                    f"{where}: expected y as numbers, found words such as {str(first)!r}; number "
                    "the classes from 0, as numpy.unique(labels, return_inverse=True) does, or "
                    "SampleSet.from_dataframe(frame, target=...), whose encoder keeps the labels"
                )


def check_loss(measures: Measures, loss: Any) -> None:
    """Raise a TrainingError for a loss that is not one number."""
    if not isinstance(loss, Tensor) or loss.data.size != 1:
        described = f"shape {loss.shape}" if isinstance(loss, Tensor) else repr(loss)
        raise TrainingError(
            f"{name_of(measures.loss)}: expected the loss to be a Tensor of one number, found "
            f"{described}; take the mean over the samples, by operations of daskdl.ops"
        )


def check_metrics(measures: Measures, prediction: Any, batch: Mapping[str, Any]) -> None:
    """Compute each metric; it raises its own error if it cannot."""
    measured = measures.measure(prediction, batch)
    for metric, statistics in zip(measures.metrics, measured, strict=True):
        metric.value(statistics)


@contextmanager
def naming_shapes(model: Module, batch: Mapping[str, Any]) -> Iterator[None]:
    """Add the model and the sample's shapes to an exception."""
    shapes = {name: np.shape(array) for name, array in batch.items()}
    try:
        yield
    except DaskdlError as error:
        line = users_line(error)
        if not line:
            raise
        raise type(error)(f"{error}{line}") from error
    except Exception as error:
        advice = ""
        if "not Tensor" in str(error) or "'Tensor' object has no attribute" in str(error):
            advice = "; daskdl.torch.TorchLoss(function) makes a loss of a function of torch"
        if "'Ragged' object has no attribute" in str(error):
            advice = f"; x has sequences of different lengths; {PAD}"
        raise TrainingError(
            f"{type(model).__name__}: one sample of shapes {shapes} raised "
            f"{type(error).__name__}: {error}{users_line(error)}{advice}"
        ) from error
