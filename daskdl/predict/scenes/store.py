"""Store: a scene's result written to a zarr array tile by tile, to be gone on with if cut off."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daskdl.compat.dask_graph import HighLevelGraph, Task, TaskRef
from daskdl.errors import SettingsError

if TYPE_CHECKING:
    import dask.array as da

Array = NDArray[Any]

#: Attribute of an array that says of which model and tiles it is the result.
TOKEN = "daskdl_prediction"


def stored(result: da.Array, out: str, token: str, dims: list[str] | None) -> Any:
    """Write the chunks of a lazy result that a zarr array does not have yet, and return the array.

    A chunk of the array is a tile. Each is written whole, by the task that computes it, so that a
    chunk that is there is done.

    Parameters
    ----------
    result : dask Array
        Of chunks that are alike but for the last along each axis.
    out : str
        A path or a URL; it is made if there is nothing.
    token : str
        Of the model, the tiles and the scene's shape.
    dims : list of str, optional

    Raises
    ------
    SettingsError
        When ``out`` is the result of something else.
    """
    import dask.array as da

    array = _array(result, out, token, dims)
    done = _done(array)
    blocks = itertools.product(*(range(n) for n in result.numblocks))
    missing = [block for block in blocks if block not in done]
    if missing:
        ends = [np.cumsum((0, *sizes)).tolist() for sizes in result.chunks]
        name, tasks = f"{result.name}-write", {}
        for i, block in enumerate(missing):
            region = tuple(slice(e[b], e[b + 1]) for e, b in zip(ends, block, strict=True))
            chunk = TaskRef((result.name, *block))
            tasks[name, i] = Task((name, i), _write, array, region, chunk)
        graph = HighLevelGraph.from_collections(name, tasks, [result])
        da.Array(graph, name, ((1,) * len(missing),), dtype=np.int64).sum().compute()
    return array


def _array(result: da.Array, out: str, token: str, dims: list[str] | None) -> Any:
    import zarr

    try:
        array = zarr.open_array(out, mode="r+", config={"write_empty_chunks": True})
    except FileNotFoundError:
        return zarr.create_array(
            out, shape=result.shape, chunks=result.chunksize, dtype=result.dtype,
            dimension_names=dims, attributes={TOKEN: token}, config={"write_empty_chunks": True},
        )  # fmt: skip
    if array.attrs.get(TOKEN) != token:
        raise SettingsError(
            f"predict, out: expected nothing at {out}, or the result of this model with these "
            "tiles to go on with, found another array; remove it or take another name"
        )
    return array


def _done(array: Any) -> set[tuple[int, ...]]:
    """Return the chunks that an array has, by their places."""
    from zarr.core.sync import sync

    async def keys() -> list[str]:
        return [key async for key in array.store_path.store.list_prefix(array.path)]

    lead = f"{array.path}/c/".lstrip("/")
    places = [key.removeprefix(lead) for key in sync(keys()) if key.startswith(lead)]
    # A name with more than numbers is that of a file that was not written to its end.
    parts = [place.split("/") for place in places]
    return {tuple(map(int, part)) for part in parts if all(p.isdigit() for p in part)}


def _write(array: Any, region: tuple[slice, ...], chunk: Array) -> Array:
    array[region] = chunk
    return np.array([chunk.size])
