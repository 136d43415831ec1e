"""Errors of predicted numbers: mean absolute and mean squared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from daskdl.metrics.metric import (
    Array,
    MeanOf,
    Statistics,
    mean_statistics,
    same_shape,
    weights_of,
)


class _Mean(MeanOf):
    """The mean of errors over all elements, correctly rounded."""

    higher_is_better = False

    def errors(self, difference: Array) -> Array:
        """Return each element's error."""
        raise NotImplementedError

    def statistics(self, prediction: Any, target: Any, sample_weight: Any = None) -> Statistics:
        """Compare two arrays of one shape."""
        prediction, target = same_shape(self, prediction, target)
        difference = np.subtract(prediction, target, dtype=np.float64)
        weight = weights_of(self, sample_weight, difference.shape)
        return mean_statistics(self.errors(difference), weight)


@dataclass(frozen=True)
class MeanAbsoluteError(_Mean):
    """Mean of abs(prediction - target) over all elements.

    Examples
    --------
    >>> MeanAbsoluteError()([[1.0], [2.0]], [[0.0], [4.0]])
    1.5
    """

    def errors(self, difference: Array) -> Array:
        """Return absolute values."""
        return np.abs(difference)


@dataclass(frozen=True)
class MeanSquaredError(_Mean):
    """Mean of (prediction - target)² over all elements.

    Examples
    --------
    >>> MeanSquaredError()([[1.0], [2.0]], [[0.0], [4.0]])
    2.5
    """

    def errors(self, difference: Array) -> Array:
        """Return squares."""
        return np.square(difference)
