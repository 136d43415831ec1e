"""Arrays in memory, of Dask, xarray or zarr as samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from daskdl.data.arrays import Arrays
from daskdl.data.nested import flat
from daskdl.data.ragged import Ragged
from daskdl.data.recipe import Recipe
from daskdl.data.sources.collections import from_dask_arrays
from daskdl.data.sources.zarr import Given, slice_recipes
from daskdl.errors import DataError


def from_arrays(arrays: Mapping[str, Any], partitions: int | None) -> list[Recipe]:
    """Return recipes of arrays; see :meth:`SampleSet.from_arrays`.

    Those in memory are one recipe, whatever ``partitions`` says.
    """
    arrays = {name: _bare(name, array) for name, array in flat(arrays).items()}
    values = arrays.values()
    if any(hasattr(value, "__dask_graph__") for value in values):
        return from_dask_arrays(arrays)
    if arrays and all(hasattr(v, "chunks") and hasattr(v, "store") for v in values):
        return slice_recipes(Given(arrays), partitions, "SampleSet.from_arrays")
    by_name = {n: v if isinstance(v, Ragged) else np.asarray(v) for n, v in arrays.items()}
    shapes = {n: (len(v),) if isinstance(v, Ragged) else v.shape for n, v in by_name.items()}
    lengths = {name: shape[0] if shape else "no axis" for name, shape in shapes.items()}
    if len(set(lengths.values())) != 1 or "no axis" in lengths.values():
        raise DataError(
            "SampleSet.from_arrays: expected arrays with one common length of the first axis, "
            f"found {lengths or 'no arrays'}"
            "; give one entry for each sample in every array"
        )
    return [Arrays(by_name)]


def _bare(name: str, array: Any) -> Any:
    """Return the array that one of xarray's holds, and any other as it is."""
    if hasattr(array, "dims") and hasattr(array, "coords"):
        array = array.data
    if np.ma.is_masked(array):
        raise DataError(
            f"SampleSet.from_arrays, {name}: expected no masked elements, found "
            f"{np.ma.getmaskarray(array).sum()}; array.filled(np.nan) makes missing numbers of them"
        )
    return array
