"""Dask collections as inputs and targets of estimators."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from dask import is_dask_collection

from daskdl.errors import DataError

if TYPE_CHECKING:
    import dask.array as da


def array_of(value: Any) -> da.Array:
    """Return an Array, DataFrame or Series as an Array with the same partitions."""
    if not hasattr(value, "to_dask_array"):
        return value
    if value.ndim == 1 and not isinstance(value.dtype, np.dtype):  # pandas dtypes, such as strings
        from pandas.api.types import is_numeric_dtype

        value = value.astype(np.float64 if is_numeric_dtype(value.dtype) else object)
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
    if not is_dask_collection(values):
        return function(values)
    meta = function(np.zeros((0, *values.shape[1:]), values.dtype))
    return values.map_blocks(function, drop_axis=drop_axis, new_axis=new_axis, meta=meta)


def computed(*values: Any) -> tuple[Any, ...]:
    """Return all values as arrays in memory; lazy collections are computed together."""
    if not any(map(is_dask_collection, values)):
        return values
    import dask

    arrays: tuple[Any, ...] = dask.compute(*(array_of(v) for v in values))
    return arrays
