"""Names from scikit-learn, an optional extra, and Dask collections as inputs and targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from daskdl.errors import DataError, MissingExtraError

if TYPE_CHECKING:
    import dask.array as da


try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.metrics import accuracy_score, r2_score
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import (
        _check_sample_weight,
        check_is_fitted,
        column_or_1d,
        validate_data,
    )
except ImportError as error:
    raise MissingExtraError(
        "daskdl.sklearn needs scikit-learn from 1.6 on, which is not installed: "
        "pip install 'daskdl[sklearn]'."
    ) from error

__all__ = [
    "BaseEstimator",
    "ClassifierMixin",
    "RegressorMixin",
    "_check_sample_weight",
    "accuracy_score",
    "check_classification_targets",
    "check_is_fitted",
    "check_random_state",
    "column_or_1d",
    "r2_score",
    "validate_data",
]


def is_lazy(value: Any) -> bool:
    """Return whether a value is a Dask collection."""
    return hasattr(value, "__dask_graph__")


def array_of(value: Any) -> da.Array:
    """Return an Array, DataFrame or Series as an Array with the same partitions."""
    if not hasattr(value, "to_dask_array"):
        return value
    if value.ndim == 1 and not isinstance(value.dtype, np.dtype):  # pandas dtypes, such as strings
        value = value.astype(object)
    return value.to_dask_array()


def no_rows(x: Any) -> Any:
    """Return an empty array or frame that gives scikit-learn the features' number and names.

    Raises DataError when X does not have two axes.
    """
    if hasattr(x, "_meta") and hasattr(x, "columns"):
        return x._meta
    if x.ndim != 2:
        raise DataError(
            f"expected X as an Array (n, features), found {x.ndim} axes"
            "; reshape it to one row for each sample"
        )
    return np.empty((0, x.shape[1]), x.dtype)


def each(
    function: Callable[[Any], Any],
    values: Any,
    drop_axis: int | None = None,
    new_axis: int | None = None,
) -> Any:
    """Apply a function to an array, chunk by chunk if it is lazy."""
    if not is_lazy(values):
        return function(values)
    meta = function(np.zeros((0, *values.shape[1:]), values.dtype))
    return values.map_blocks(function, drop_axis=drop_axis, new_axis=new_axis, meta=meta)


def computed(*values: Any) -> tuple[Any, ...]:
    """Return all values as arrays in memory; lazy collections are computed together."""
    if not any(map(is_lazy, values)):
        return values
    import dask

    arrays: tuple[Any, ...] = dask.compute(*(array_of(v) for v in values))
    return arrays
