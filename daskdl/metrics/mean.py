"""Means of errors and of a user's function; metrics of one of a model's results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from daskdl.errors import DataError, ShapeError
from daskdl.metrics.metric import (
    Array,
    MeanOf,
    Metric,
    Statistics,
    mean_statistics,
    same_shape,
    weights_of,
)


@dataclass(frozen=True)
class Mean(MeanOf):
    """Mean over all samples of ``function(prediction, target)``.

    Parameters
    ----------
    function : callable
        Maps two arrays (N, ...) to numbers for each sample, (N,) or (N, ...). It must pickle.
    higher_is_better : bool

    Examples
    --------
    >>> Mean(lambda prediction, target: abs(prediction - target) > 1)([1.0, 5.0], [0.5, 3.0])
    0.5
    """

    function: Callable[[Any, Any], Any]
    higher_is_better: bool = False  # type: ignore[misc]  # one's own, not the class's

    def statistics(self, prediction: Any, target: Any, sample_weight: Any = None) -> Statistics:
        """Apply the function to arrays (N, ...)."""
        prediction, target = np.asarray(prediction), np.asarray(target)
        values = np.asarray(self.function(prediction, target))
        if values.shape[:1] != target.shape[:1] or values.dtype.kind not in "fiub":
            name = getattr(self.function, "__qualname__", type(self.function).__qualname__)
            raise ShapeError(
                f"Mean: expected {name} to return a number for each of {len(target)} samples, "
                f"found {values.dtype} {values.shape}"
            )
        values = values.astype(np.float64)
        return mean_statistics(values, weights_of(self, sample_weight, values.shape))


@dataclass(frozen=True)
class Output(Metric):
    """A metric of one result of a model with several results, and its target.

    ``Trainer(metrics={"kind": [Accuracy()], "price": [MeanAbsoluteError()]})`` makes these.

    Parameters
    ----------
    name : str or int
        Name of the result and of the target, or their number in a tuple.
    metric : Metric

    Examples
    --------
    >>> from daskdl.metrics import MeanAbsoluteError
    >>> metric = Output("price", MeanAbsoluteError())
    >>> metric({"price": [3.0], "kind": [0.1]}, {"price": [1.0], "kind": [0]})
    2.0
    """

    name: str | int
    metric: Metric

    @property
    def higher_is_better(self) -> bool:  # type: ignore[override]
        """The inner metric's value."""
        return self.metric.higher_is_better

    def joined(self) -> frozenset[str]:
        """Return the names of statistics that are joined end to end."""
        return self.metric.joined()

    def statistics(self, prediction: Any, target: Any, sample_weight: Any = None) -> Statistics:
        """Return the metric's statistics of this result and target."""
        pair = self._of("result", prediction), self._of("target", target)
        return self.metric.statistics(*pair, sample_weight)

    def value(self, statistics: Mapping[str, Array]) -> float:
        """Return the metric."""
        return self.metric.value(statistics)

    def _of(self, kind: str, values: Any) -> Any:
        names = list(values) if isinstance(values, Mapping) else list(range(len(values)))
        if isinstance(values, (tuple, Mapping)) and self.name in names:
            return values[self.name]  # type: ignore[index]
        described = names if isinstance(values, (tuple, Mapping)) else "one array"
        raise DataError(
            f"{type(self.metric).__name__}: expected a {kind} {self.name!r}, found {described}"
            "; name metrics as the model's results and the samples' y are named"
        )


class _Mean(MeanOf):
    """The mean over all elements of a function of the difference, correctly rounded."""

    higher_is_better = False
    error: ClassVar[Any]

    def statistics(self, prediction: Any, target: Any, sample_weight: Any = None) -> Statistics:
        """Compare two arrays of one shape."""
        prediction, target = same_shape(self, prediction, target)
        difference = np.subtract(prediction, target, dtype=np.float64)
        weight = weights_of(self, sample_weight, difference.shape)
        return mean_statistics(type(self).error(difference), weight)


@dataclass(frozen=True)
class MeanAbsoluteError(_Mean):
    """Mean of abs(prediction - target) over all elements.

    Examples
    --------
    >>> MeanAbsoluteError()([[1.0], [2.0]], [[0.0], [4.0]])
    1.5
    """

    error = np.abs


@dataclass(frozen=True)
class MeanSquaredError(_Mean):
    """Mean of (prediction - target)² over all elements.

    Examples
    --------
    >>> MeanSquaredError()([[1.0], [2.0]], [[0.0], [4.0]])
    2.5
    """

    error = np.square
