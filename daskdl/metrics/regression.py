"""Errors of predicted numbers: mean absolute and mean squared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskdl.metrics.exactsum import exact_sum, mean_of
from daskdl.metrics.metric import Array, Metric, Statistics, count, same_shape


class _Mean(Metric):
    """The mean of errors over all elements, correctly rounded."""

    def errors(self, difference: Array) -> Array:
        """Return each element's error."""
        raise NotImplementedError

    def statistics(self, prediction: Any, target: Any) -> Statistics:
        """Compare two arrays of one shape."""
        prediction, target = same_shape(self, prediction, target)
        difference = np.subtract(prediction, target, dtype=np.float64)
        return {"sum": exact_sum(self.errors(difference)), "count": count(difference.size)}

    def value(self, statistics: Mapping[str, Array]) -> float:
        """Return the mean; NaN where a prediction or a target is."""
        return mean_of(statistics["sum"], int(statistics["count"]))


@dataclass(frozen=True)
class MeanAbsoluteError(_Mean):
    """Mean of abs(prediction - target) over all elements."""

    def errors(self, difference: Array) -> Array:
        """Return absolute values."""
        return np.abs(difference)


@dataclass(frozen=True)
class MeanSquaredError(_Mean):
    """Mean of (prediction - target)² over all elements."""

    def errors(self, difference: Array) -> Array:
        """Return squares."""
        return np.square(difference)
