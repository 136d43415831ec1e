"""xarray: samples along a named dimension of Datasets and DataArrays."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from daskdl.data.nested import flat
from daskdl.data.recipe import Arrays, Recipe
from daskdl.data.sources.collections import from_dask_arrays
from daskdl.data.sources.dataframe import Field, columns_of
from daskdl.data.sources.urls import located
from daskdl.data.sources.zarr import ZarrArrays, in_partitions, slice_recipes
from daskdl.errors import DataError

if TYPE_CHECKING:
    import xarray as xr

    from daskdl.data.samples import SampleSet


def from_xarray(
    cls: type[SampleSet],
    /,
    data: str | os.PathLike[str] | xr.Dataset | xr.DataArray,
    *,
    dim: str,
    partitions: int | None = None,
    **fields: Field,
) -> SampleSet:
    """Make a set of the samples along a dimension of a Dataset, a DataArray or a zarr store.

    Parameters
    ----------
    data : path of a zarr store, Dataset or DataArray
    dim : str
        Dimension of the samples.
    partitions : int, optional
        By default one for each chunk.
    **fields : str or list of str
        Variables by name: ``x="image", y="label"``. Several, as in ``x=["u10", "v10"]``, are
        stacked on a last axis. Other dimensions keep the data's order. A DataArray is ``x`` by
        default.
    """
    return in_partitions(cls, _recipes(data, dim, flat(fields), partitions), partitions)


def _recipes(
    data: Any, dim: str, fields: Mapping[str, Field], partitions: int | None
) -> Sequence[Recipe]:
    import xarray as xr

    if isinstance(data, str | os.PathLike):
        path = located(data)
        stored = ZarrArrays(path, {name: name for name in columns_of(fields)})
        source = StoredVariables(stored, dim, dict(fields))
        source()  # raises an error for any other content
        return slice_recipes(replace(source, stored=stored.known()), partitions, path)
    if isinstance(data, xr.DataArray):
        only = str(data.name or "x")
        data = data.to_dataset(name=only)
        fields = fields or {"x": only}
    if not isinstance(data, xr.Dataset):
        raise DataError(
            "SampleSet.from_xarray: expected a path, a Dataset or a DataArray, found "
            f"{type(data).__name__}; give arrays to SampleSet.from_arrays"
        )
    variables(data.isel({dim: slice(0, 0)}) if dim in data.dims else data, dim, fields, "data")
    used = map(data.variables.__getitem__, columns_of(fields))
    # xarray has no public word for "read when it is needed".
    if any(not v._in_memory and v.chunks is None for v in used):
        return slice_recipes(partial(sliced, data, dim, dict(fields)), partitions, "data")
    chosen = variables(data, dim, fields, "data").items()
    arrays = {name: variable.data for name, variable in chosen}
    if any(hasattr(a, "__dask_graph__") for a in arrays.values()):
        return from_dask_arrays(arrays)
    return [Arrays(arrays)]


def variables(
    data: xr.Dataset, dim: str, fields: Mapping[str, Field], name: str
) -> dict[str, xr.Variable]:
    """Return the variables that make up samples, the dimension first.

    Several variables of one array are stacked on a last axis.
    """
    import xarray as xr

    def one(key: str) -> xr.Variable:
        if key not in data.variables:
            raise DataError(
                f"{name}: expected a variable {key!r}, found {sorted(map(str, data.variables))}"
                "; name one of these"
            )
        if dim not in data[key].dims:
            raise DataError(
                f"{name}: expected {key} along {dim!r}, found it over {data[key].dims}"
                "; name another dim, or give it the dimension by expand_dims"
            )
        return data[key].variable.transpose(dim, ...)

    if not fields:
        raise DataError(
            f"{name}: expected the variables to use, such as x='t2m', found none; there are "
            f"{sorted(map(str, data))}"
        )
    chosen = {}
    for k, f in fields.items():
        if isinstance(f, str):
            chosen[k] = one(f)
        else:
            parts = xr.concat([xr.DataArray(one(key)) for key in f], dim="_side")
            chosen[k] = parts.variable.transpose(..., "_side")
    return chosen


def sliced(data: Any, dim: str, fields: Mapping[str, Field]) -> dict[str, Sliced]:
    """Return a Dataset's arrays by name; xarray reads them when they are sliced."""
    return {name: Sliced(data, dim, f) for name, f in fields.items()}


@dataclass(frozen=True)
class StoredVariables:
    """The variables of a zarr store as xarray decodes them, opened on the worker that reads."""

    stored: ZarrArrays
    dim: str
    fields: Mapping[str, Field]

    @property
    def versions(self) -> Mapping[str, str]:
        """Versions of the variables, once they are known."""
        return self.stored.versions

    def __call__(self) -> dict[str, Sliced]:
        """Return the arrays by name."""
        arrays = sliced(open_zarr(self.stored.url), self.dim, self.fields)
        if self.versions:
            self.stored()  # looks at them
        return arrays


@dataclass(frozen=True)
class Sliced:
    """One array of samples, read by slices along the dimension."""

    data: Any
    dim: str
    field: Field

    def __getitem__(self, rows: slice) -> Any:
        part = self.data.isel({self.dim: rows})
        return variables(part, self.dim, {"it": self.field}, "data")["it"].values

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of all samples."""
        whole = variables(self.data, self.dim, {"it": self._first}, "data")["it"].shape
        return whole if isinstance(self.field, str) else (*whole, len(self.field))

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype as it is read."""
        some = variables(self.data.isel({self.dim: slice(0, 0)}), self.dim, {"it": self.field}, "")
        return some["it"].dtype

    @property
    def chunks(self) -> Sequence[int] | None:
        """Size of a chunk of the store along the dimension."""
        variable = self.data[self._first].variable
        sizes = variable.encoding.get("chunks")
        return None if sizes is None else (sizes[variable.dims.index(self.dim)],)

    @property
    def _first(self) -> str:
        return self.field if isinstance(self.field, str) else self.field[0]


def open_zarr(path: str) -> xr.Dataset:
    """Open a zarr store as an xarray Dataset without Dask; it is read when it is sliced.

    Consolidated metadata are used if there are any: a writer replaces them at once, but the arrays'
    own metadata one after the other.
    """
    import xarray as xr

    if "://" not in path and not Path(path).is_dir():
        raise DataError(
            f"{path}: expected a zarr store, found no such folder"
            "; look at the path; each worker needs to see it too"
        )
    try:
        return xr.open_zarr(path, chunks=None, consolidated=True)
    except Exception:  # it has none, or is no store, which is then told
        pass
    try:
        return xr.open_zarr(path, chunks=None, consolidated=False)
    except (ValueError, KeyError, OSError) as error:  # of what lies there
        raise DataError(
            f"{path}: expected a zarr store, found something else ({error})"
            "; open other formats by xarray.open_dataset, and give the Dataset"
        ) from error
    except Exception as error:  # of xarray, zarr or how they are called
        raise DataError(
            f"{path}: could not be opened by xarray.open_zarr, which may not be the store's fault: "
            f"{type(error).__name__}: {error}; open it yourself, and give the Dataset"
        ) from error
