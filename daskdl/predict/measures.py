"""Measures: the loss and the metrics that compare predictions with targets."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.data.functions import name_of
from daskdl.data.nested import nested
from daskdl.data.partition import Indices
from daskdl.errors import SettingsError, ShapeError
from daskdl.metrics import Metric
from daskdl.metrics.metric import Statistics
from daskdl.nn import CrossEntropyLoss, NLLLoss
from daskdl.nn.core.arguments import as_arrays

#: The statistics of each metric for some predictions.
Measured = tuple[Statistics, ...]


#: The same as plain data: name, dtype, shape and bytes of each statistic.
Plain = list[list[tuple[str, str, tuple[int, ...], bytes]]]


def plain(measured: Measured) -> Plain:
    """Return statistics as plain data, without pickles."""
    return [
        [(name, a.dtype.str, a.shape, a.tobytes()) for name, a in _arrays(statistics)]
        for statistics in measured
    ]


def statistics_of(packed: Plain) -> Measured:
    """Return the statistics of :func:`plain` data."""
    return tuple(
        {name: np.frombuffer(data, kind).reshape(shape) for name, kind, shape, data in statistics}
        for statistics in packed
    )


def _arrays(statistics: Statistics) -> list[tuple[str, NDArray[Any]]]:
    arrays = [(name, np.asarray(value)) for name, value in statistics.items()]
    for name, array in arrays:
        if array.dtype.kind in "OV":
            raise SettingsError(
                f"metric: expected statistics that are arrays of numbers or words, found {name} of "
                f"{array.dtype}; encode it in numbers"
            )
    return arrays


@dataclass(frozen=True)
class Measures:
    """A loss and metrics."""

    loss: Callable[..., Any]
    metrics: tuple[Metric, ...] = ()

    def compare(
        self,
        prediction: Any,
        batch: Mapping[str, Any],
        positions: Indices | None = None,
        others: Any = None,
    ) -> Any:
        """Return the loss of a prediction, with the samples' weights if they have some.

        ``positions`` (n,) of the samples in their partition are for errors about labels. ``others``
        are the other shards' predictions, for a loss of whole batches.
        """
        y = nested(batch, "y")
        try:
            more = {} if others is None else {"others": others}
            return self.loss(prediction, y, **_weight(batch), **more)
        except ShapeError as error:
            if positions is None or isinstance(prediction, (tuple, Mapping)):
                raise
            wrong = wrong_labels(self.loss, np.shape(as_arrays(prediction)), y)
            if not wrong.size:
                raise
            raise ShapeError(f"{error} in sample {positions[wrong[0]]} of the partition") from error

    def measure(self, prediction: Any, batch: Mapping[str, Any]) -> Measured:
        """Return each metric's statistics of a prediction."""
        if not self.metrics:
            return ()
        arrays, y = as_arrays(prediction), nested(batch, "y")
        return tuple(m.statistics(arrays, y, **_weight(batch)) for m in self.metrics)

    def merged(self, parts: Sequence[Measured]) -> Measured:
        """Return each metric's statistics of all parts together; empty without parts."""
        columns = zip(*parts, strict=True)
        return tuple(
            m.merge(*column) for m, column in zip(self.metrics, columns, strict=bool(parts))
        )

    def values(self, parts: Sequence[Measured]) -> tuple[float, ...]:
        """Return each metric of all parts together; empty without parts."""
        merged = self.merged(parts)
        return tuple(float(m.value(s)) for m, s in zip(self.metrics, merged, strict=bool(parts)))

    def check_weight(self, where: str, batch: Mapping[str, Any]) -> None:
        """Raise a SettingsError for weights that the loss or a metric does not take."""
        if "sample_weight" not in batch:
            return
        for function in (self.loss, *(metric.statistics for metric in self.metrics)):
            if not _takes_weight(function):
                raise SettingsError(
                    f"{where}: the samples have sample_weight, expected {name_of(function)} to "
                    "take it as an argument of that name, found that it does not; add the "
                    "argument, or give samples without weights"
                )


def wrong_labels(loss: Callable[..., Any], prediction: tuple[int, ...], y: Any) -> Indices:
    """Return the positions of samples with an invalid label, if the loss is of classes.

    The prediction has the shape (n, ..., classes), the targets (m, ...); m may differ from n.
    """
    if not isinstance(loss, CrossEntropyLoss | NLLLoss) or len(prediction) < 2:
        return np.zeros(0, np.int64)
    y = np.asarray(y)
    if y.dtype.kind not in "iu" or y.ndim != len(prediction) - 1:
        return np.zeros(0, np.int64)
    outside = (y < 0) | (y >= prediction[-1])
    if loss.ignore_index is not None:
        outside &= y != loss.ignore_index
    return np.flatnonzero(outside.reshape(len(y), -1).any(axis=1))


def _weight(batch: Mapping[str, Any]) -> dict[str, Any]:
    return {"sample_weight": batch["sample_weight"]} if "sample_weight" in batch else {}


def _takes_weight(function: Callable[..., Any]) -> bool:
    function = getattr(function, "forward", function)  # a loss of daskdl.nn
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return True  # unknown: the call itself raises
    return any(p.name == "sample_weight" or p.kind is p.VAR_KEYWORD for p in parameters)
