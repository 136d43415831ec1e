"""Mean: the mean over samples of a user's own function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskdl.errors import ShapeError
from daskdl.metrics.metric import (
    Array,
    Metric,
    Statistics,
    mean_statistics,
    mean_value,
    weights_of,
)


@dataclass(frozen=True)
class Mean(Metric):
    """Mean over all samples of ``function(prediction, target)``.

    Parameters
    ----------
    function : callable
        From two arrays (N, ...) to a number for each sample, (N,) or (N, ...). It must pickle.
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

    def value(self, statistics: Mapping[str, Array]) -> float:
        """Return the mean; NaN where the function returned it."""
        return mean_value(statistics)
