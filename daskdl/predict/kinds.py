"""Kinds of samples: prediction of each kind, with results of the same kind."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daskdl.cluster.current import check_client, using
from daskdl.cluster.processors import precision_on
from daskdl.cluster.settings import setting
from daskdl.data import SampleSet
from daskdl.data.nested import is_nested
from daskdl.errors import DataError, SettingsError, ShapeError
from daskdl.nn import Module
from daskdl.nn.core.arguments import each, parts_of
from daskdl.nn.quantized import float_precision
from daskdl.predict import partitions
from daskdl.predict.arguments import encoder_of, whole
from daskdl.predict.kept import held_by_workers, predictor_of
from daskdl.predict.predictor import Predictor
from daskdl.predict.sampleset import by_workers, is_here, of_samples
from daskdl.predict.scenes import predict_scene
from daskdl.predict.scenes.windows import result_of_large

if TYPE_CHECKING:
    import dask.array as da
    import dask.bag as db
    import dask.dataframe as dd
    import xarray as xr

Array = NDArray[Any]
Shape = tuple[int, ...]

#: Most bytes of a sample that is tried as a whole before the prediction.
LARGE = 32_000_000


def predict(
    model: Module,
    samples: Any,
    *,
    layer: str | None = None,
    classes: bool = False,
    batch_size: int | None = None,
    threads: int | None = None,
    dims: Sequence[str] | None = None,
    precision: str = "float32",
    client: Any = None,
    tile: Mapping[Any, int] | None = None,
    **tiling: Any,
) -> Any:
    """Return a model's results for samples of any kind; see :meth:`daskdl.nn.Module.predict`.

    ``layer`` is for :meth:`daskdl.nn.Module.embed`, ``classes`` for
    :meth:`daskdl.nn.Module.predict_class`.

    Examples
    --------
    >>> predict(nn.Linear(3, 2), np.zeros((5, 3), np.float32)).shape
    (5, 2)
    """
    if batch_size is not None:
        batch_size = whole("predict, batch_size", batch_size)
    threads = setting("threads") if threads is None else whole("predict, threads", threads)
    precision = float_precision("predict", model, precision)
    if client is not None and client is not False:
        client = check_client(client)
    precision = precision_on(precision, client)
    predictor = predictor_of(model, layer, classes, batch_size, threads, precision)
    if dims is not None and not is_of(samples, "xarray", "DataArray", "Dataset"):
        raise SettingsError(
            f"predict, dims: expected with a DataArray or a Dataset, found with "
            f"{type(samples).__name__}"
            "; leave dims out, or give xarray's"
        )
    if tiling and tile is None:
        raise SettingsError(
            f"predict: expected {', '.join(tiling)} together with tile, cells by axis such as "
            "{'y': 512, 'x': 512}, found no tile"
        )
    with using(client):
        if tile is not None:
            return predict_scene(predictor, samples, tile, client=client, **tiling)
        if client and is_here(samples):
            return by_workers(samples, client, lambda lazy: _predict(predictor, lazy, dims))
        return _predict(predictor, samples, dims)


def _predict(predictor: Predictor, samples: Any, dims: Sequence[str] | None) -> Any:
    """Return the results of a predictor for samples of any kind."""
    if isinstance(samples, SampleSet):
        return of_samples(_lazily(predictor), samples)
    if is_of(samples, "dask.array", "Array"):
        return of_array(_lazily(predictor), samples)
    if is_of(samples, "dask.bag", "Bag"):
        return of_bag(_lazily(predictor), samples)
    if is_of(samples, "dask.dataframe", "DataFrame"):
        return of_frame(_lazily(predictor), samples)
    if is_of(samples, "pandas", "DataFrame"):
        _check_numbers(samples, predictor.model)
        return partitions.rows_of(samples, predictor)
    if is_of(samples, "xarray", "DataArray"):
        return of_dataarray(predictor, samples, dims)
    if is_of(samples, "xarray", "Dataset"):
        return of_dataset(predictor, samples, dims)
    if is_nested(samples) and any(hasattr(a, "__dask_graph__") for a in parts_of(samples)):
        return of_samples(_lazily(predictor), SampleSet.from_arrays(x=samples))
    return predictor(samples)


def is_of(samples: Any, module: str, *classes: str) -> bool:
    """Return whether samples are of these classes, without importing their module."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(samples, tuple(getattr(loaded, c) for c in classes))


def _lazily(predictor: Predictor) -> Predictor:
    """Return a predictor for tasks: of the current model, with one thread for each task."""
    return replace(predictor, threads=predictor.threads or 1).snapshot()


def of_array(predictor: Predictor, x: da.Array) -> da.Array:
    """Return the results of a dask Array (N, ...), in the same chunks along its first axis."""
    import dask.array as da
    from dask.base import tokenize

    if not x.ndim or any(np.isnan(n) for n in x.shape[1:]):
        raise DataError(
            f"predict: expected a dask Array (N, ...), found shape {x.shape}"
            "; call compute_chunk_sizes() on it first"
        )
    whole = x.rechunk(dict.fromkeys(range(1, x.ndim), -1))
    predictor, one = _tried(predictor, x.shape[1:], x.dtype)
    weights, shape = held_by_workers(predictor), one.shape[1:]
    return da.map_blocks(
        partitions.of_chunk,
        whole,
        weights,
        shape,
        chunks=(whole.chunks[0], *((n,) for n in shape)),
        drop_axis=list(range(1, x.ndim)),
        new_axis=list(range(1, one.ndim)),
        meta=one[:0],
        # Before 2025.9 dask adds another hash to the name, and warns of its argument token.
        name=f"predict-{tokenize(whole.name, weights.key, shape)}",
    )


def _tried(predictor: Predictor, shape: tuple[int, ...], dtype: Any) -> tuple[Predictor, Any]:
    """Return a predictor with a batch size, and a result (n, ...) for samples of this shape."""
    few = (predictor.few, *shape)
    if np.prod(shape) * dtype.itemsize >= LARGE:
        result = result_of_large(predictor, shape, dtype)
        if result is not None:
            return predictor.in_batches(predictor.batch_size or predictor.few), result
    predictor, parts = predictor.tried(np.zeros(few, dtype))
    return predictor, partitions.only(parts)


def of_bag(predictor: Predictor, bag: db.Bag) -> db.Bag:
    """Return the results of the elements of a Bag: arrays, numbers, or dicts with x."""
    import dask.bag as db

    numbers = db.from_sequence(range(bag.npartitions), npartitions=bag.npartitions)
    return bag.map_partitions(partitions.of_elements, held_by_workers(predictor), numbers)


def of_frame(predictor: Predictor, frame: dd.DataFrame) -> dd.DataFrame | dd.Series:
    """Return the results of the rows of a dask DataFrame, with its index and divisions."""
    _check_numbers(frame, predictor.model)
    encoder = encoder_of(predictor.model)
    if encoder is not None:
        inputs: Any = each(
            lambda a: np.zeros((predictor.few, *a.shape[1:]), a.dtype), encoder.inputs(frame._meta)
        )
    else:
        inputs = np.zeros((predictor.few, len(frame.columns)), np.float32)
    predictor, _ = predictor.tried(inputs)
    meta = partitions.rows_of(frame._meta, predictor)
    return frame.map_partitions(partitions.of_frame, held_by_workers(predictor), meta=meta)


def _check_numbers(frame: Any, model: Module) -> None:
    if encoder_of(model) is not None:
        return
    words = [name for name, dtype in frame.dtypes.items() if dtype.kind not in "fiub"]
    if words:
        raise DataError(
            f"predict: expected columns of numbers, found {words}; choose columns by df[[...]]"
        )


def of_dataarray(
    predictor: Predictor, data: xr.DataArray, dims: Sequence[str] | None
) -> xr.DataArray:
    """Return the results of a DataArray; samples are along its first dimension."""
    import xarray as xr

    if not data.ndim:
        raise DataError("predict: expected a DataArray with a dimension of samples, found none")
    if data.chunks is None:
        result: Any = partitions.only(predictor(data.values))
    else:
        result = of_array(_lazily(predictor), data.data)
    names = tuple(f"output_{i}" for i in range(result.ndim - 1)) if dims is None else tuple(dims)
    if len(names) != result.ndim - 1:
        raise ShapeError(
            f"predict, dims: expected a name for each axis of the results after the samples', "
            f"shape {result.shape[1:]}, found {names}"
        )
    first = data.dims[0]
    coords = {
        name: coordinate
        for name, coordinate in data.coords.items()
        if set(coordinate.dims) <= {first, *names}
        and all(n == result.shape[(first, *names).index(d)] for d, n in coordinate.sizes.items())
    }
    return xr.DataArray(result, dims=(first, *names), coords=coords, name="prediction")


def of_dataset(predictor: Predictor, data: xr.Dataset, dims: Sequence[str] | None) -> xr.Dataset:
    """Return the results of a Dataset's variable x, or its only variable, as ``prediction``."""
    names = list(data.data_vars)
    if "x" not in names and len(names) != 1:
        raise DataError(
            f"predict: expected a Dataset with a variable x, or with one variable, found {names}"
            "; choose one by data[['name']]"
        )
    return of_dataarray(predictor, data["x" if "x" in names else names[0]], dims).to_dataset()
