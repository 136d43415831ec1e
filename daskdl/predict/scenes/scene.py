"""Scene: the graph of a prediction by tiles, of arrays in memory, on disk or on a cluster."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from dask.tokenize import tokenize
from numpy.typing import NDArray

from daskdl.cluster.current import current_client, using
from daskdl.errors import DataError, SettingsError
from daskdl.predict.arguments import whole, wrong
from daskdl.predict.predictor import Predictor
from daskdl.predict.scenes.memory import check_memory
from daskdl.predict.scenes.running import gathered
from daskdl.predict.scenes.store import stored
from daskdl.predict.scenes.tasks import Layout
from daskdl.predict.scenes.tiles import Tiling
from daskdl.predict.scenes.windows import Axis, exact_axes, fixed_axes

if TYPE_CHECKING:
    pass

Array = NDArray[Any]


def predict_scene(
    predictor: Predictor,
    scene: Any,
    tile: Mapping[Any, int],
    overlap: int | str = "auto",
    blend: str = "none",
    channel: Any = None,
    out: str | None = None,
    nodata: float | None = None,
    client: Any = None,
) -> Any:
    """Return a model's result for a scene, tile by tile; see :meth:`daskdl.nn.Module.predict`.

    Parameters
    ----------
    predictor : Predictor
    scene : numpy array or memmap, dask Array, zarr Array or xarray DataArray
    tile : mapping of names or numbers of axes to cells
    overlap : "auto", "field" or int
    blend : "none" or "linear"
    channel : name or number of an axis, optional
    out : str, optional
        A zarr array that the result is written to, and goes on where it was cut off.
    nodata : float, optional
        The number of cells without data, in all channels.
    client : distributed.Client, optional
        Whose workers predict a scene in memory, too.
    """
    names = [*getattr(scene, "dims", range(getattr(scene, "ndim", 0)))]
    layout, tiles = _layout(names, tile, channel)
    labelled = hasattr(scene, "dims")
    cells = (scene.data if scene.chunks is not None else scene.values) if labelled else scene
    if not hasattr(cells, "shape") or cells.dtype.kind not in "fiub":
        raise wrong("predict, tile", "a scene of numbers, such as an array of numpy or zarr", scene)
    lengths = tuple(cells.shape[axis] for axis in layout.image)
    channels = 1 if layout.channel is None else cells.shape[layout.channel]
    if 0 in cells.shape or any(np.isnan(n) for n in cells.shape):
        raise DataError(f"predict, tile: expected a scene with cells, found shape {cells.shape}")
    predictor = predictor.in_batches(1)
    if overlap in ("auto", "field"):
        if blend != "none":
            raise wrong("predict, blend", "'none' where tiles have no seams, or overlap=n", blend)
        axes = exact_axes(predictor, lengths, tiles, channels, cells.dtype, overlap == "auto")
    else:
        overlap = whole("predict, overlap", overlap, 0)
        if blend not in ("none", "linear"):
            raise wrong("predict, blend", "'none' or 'linear'", blend)
        if blend == "linear" and not 0 < 2 * overlap <= min(tiles.values()):
            raise wrong("predict, overlap", "at most half a tile where tiles are blended", overlap)
        if blend == "linear" and predictor.classes:
            raise wrong("predict, blend", "'none' for classes, of which there is no mean", blend)
        axes = fixed_axes(predictor, lengths, tiles, overlap, channels, cells.dtype)
    if nodata is not None:
        _check_nodata(nodata, blend, lengths, axes)
    in_memory = isinstance(cells, np.ndarray) and not isinstance(cells, np.memmap)
    if in_memory and out is None and not client:
        with using(False):  # each tile with all threads
            tiling = Tiling(predictor, cells, layout, axes, blend, nodata)
            result = tiling.lazy().compute(scheduler="synchronous")
    else:
        lazily = replace(predictor, threads=predictor.threads or 1).snapshot()
        tiling = Tiling(lazily, cells, layout, axes, blend, nodata)
        if out is not None or in_memory:
            check_memory(tiling, tiles, current_client())
        if out is not None:
            dims = _dims(scene, len(tiling.chunks), layout) if labelled else None
            token = tokenize(
                lazily.token, cells.shape, cells.dtype, tiles, overlap, blend, channel, nodata
            )
            return stored(tiling, out, token, dims, current_client())
        result = gathered(tiling, client) if in_memory else tiling.lazy()
    return _labelled(scene, result, layout, axes) if labelled else result


def _check_nodata(nodata: Any, blend: str, lengths: tuple[int, ...], axes: list[Axis]) -> None:
    """Raise unless cells without data can be told in the result."""
    if isinstance(nodata, bool) or not isinstance(nodata, int | float | np.number):
        raise wrong("predict, nodata", "a number, or nan", nodata)
    if blend != "none":
        raise wrong("predict, blend", "'none' where cells have no data", blend)
    for n, axis in zip(lengths, axes, strict=True):
        if axis.length != math.ceil(n / axis.scale):
            raise SettingsError(
                f"predict, nodata: expected a result for each {axis.scale} cells, found "
                f"{axis.length} of {n}; give a network that pads, or leave nodata out"
            )


def _layout(
    names: list[Any], tile: Mapping[Any, int], channel: Any
) -> tuple[Layout, dict[Any, int]]:
    """Return the roles of the axes, and the tiles in the order of the scene's axes."""
    where = "predict, tile"
    if not isinstance(tile, Mapping) or not tile:
        raise wrong(where, "cells by axis, such as {'y': 512, 'x': 512}, or {0: 512, 1: 512}", tile)
    for name in (*tile, *([] if channel is None else [channel])):
        if name not in names:
            raise wrong(where, f"axes of the scene, which are {names}", name)
    tiles = {name: whole(f"{where}[{name!r}]", tile[name]) for name in names if name in tile}
    others = [name for name in names if name not in tile]
    if channel is None and len(others) > 1:
        raise wrong("predict, channel", f"the axis of channels, one of {others}", None)
    channel = others[0] if channel is None and others else channel
    samples = tuple(i for i, name in enumerate(names) if name in others and name != channel)
    image = tuple(i for i, name in enumerate(names) if name in tile)
    return Layout(samples, image, names.index(channel) if channel in others else None), tiles


def _dims(scene: Any, ndim: int, layout: Layout) -> list[str]:
    order = layout.order(ndim > len(layout.samples) + len(layout.image))
    return ["output" if axis < 0 else str(scene.dims[axis]) for axis in order]


def _labelled(scene: Any, result: Any, layout: Layout, axes: list[Axis]) -> Any:
    """Return the result as a DataArray with the scene's coordinates and attributes."""
    xr = sys.modules["xarray"]
    dims = _dims(scene, result.ndim, layout)
    sizes = dict(zip(dims, result.shape, strict=True))
    coords = {
        name: coordinate
        for name, coordinate in scene.coords.items()
        if all(sizes.get(dim) == n for dim, n in coordinate.sizes.items())
    }
    for i, axis in zip(layout.image, axes, strict=True):
        name, step = scene.dims[i], axis.scale
        at = scene.coords.get(name)
        even = step.denominator == 1 and step > 1 and axis.length * step == scene.shape[i]
        if at is not None and even and at.dtype.kind in "fiu":  # the middle of what it stands for
            coords[name] = (name, at.values.reshape(axis.length, -1).mean(1), at.attrs)
    return xr.DataArray(result, coords, dims, "prediction", scene.attrs)
