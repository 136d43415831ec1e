"""Scene: the graph of a prediction by tiles, for arrays in memory, on disk or on a cluster."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from dask.tokenize import tokenize
from numpy.typing import NDArray

from daskdl.cluster.current import current_client, using
from daskdl.data.sources.zarr import check_plain
from daskdl.errors import DataError, SettingsError
from daskdl.predict.arguments import whole, wrong
from daskdl.predict.predictor import Predictor
from daskdl.predict.scenes.geotiff import Raster, place_of, written
from daskdl.predict.scenes.memory import check_memory, room_for_chunks
from daskdl.predict.scenes.running import gathered
from daskdl.predict.scenes.store import stored
from daskdl.predict.scenes.tasks import Layout
from daskdl.predict.scenes.tiles import Tiling
from daskdl.predict.scenes.windows import PROBE, Axis, exact_axes, fixed_axes, like_length

#: Ways to blend tiles, and numpy.pad's names of paddings around a scene.
BLENDS, BOUNDARIES = ("none", "linear", "cosine"), ("reflect", "symmetric", "edge", "wrap")

Array = NDArray[Any]


def predict_scene(
    predictor: Predictor,
    scene: Any,
    tile: Mapping[Any, int],
    overlap: int | str = "auto",
    blend: str = "none",
    channel: Any = None,
    out: Any = None,
    nodata: float | None = None,
    boundary: str | None = None,
    client: Any = None,
) -> Any:
    """Return a model's result for a scene, tile by tile; see :meth:`daskdl.nn.Module.predict`.

    Parameters
    ----------
    predictor : Predictor
    scene : numpy array or memmap, dask Array, zarr Array, xarray DataArray, or a GeoTIFF's path
    tile : mapping of names or numbers of axes to cells
    overlap : "auto", "field" or int
    blend : "none", "linear" or "cosine"
    channel : name or number of an axis, optional
    out : path or URL, or a mapping of names or numbers of several results to them, optional
        A zarr array, or a GeoTIFF, for the result; an interrupted call resumes.
    nodata : float, optional
        Value of cells without data in all channels; by default a GeoTIFF's own.
    boundary : "reflect", "symmetric", "edge" or "wrap", optional
        Padding around the scene; by default the network's own.
    client : distributed.Client, optional
        Client whose workers predict a scene in memory, too.
    """
    if isinstance(scene, str | os.PathLike):
        scene = Raster.of(scene)
    if isinstance(scene, Raster) and nodata is None and blend == "none":
        nodata = scene.nodata
    if isinstance(out, str | os.PathLike):
        out = os.fspath(out).removeprefix("file://")
    if getattr(getattr(scene, "dtype", None), "kind", "") not in [*"fiub"]:
        raise wrong("predict, tile", "a scene of numbers, such as an array of numpy or zarr", scene)
    check_plain("predict, tile", scene)
    labelled = hasattr(scene, "coords")
    layout, tiles = _layout([*(scene.dims if labelled else range(scene.ndim))], tile, channel)
    cells = (scene.data if scene.chunks is not None else scene.values) if labelled else scene
    lengths = tuple(cells.shape[axis] for axis in layout.image)
    channels = 1 if layout.channel is None else cells.shape[layout.channel]
    if 0 in cells.shape or any(np.isnan(n) for n in cells.shape):
        raise DataError(
            f"predict, tile: expected a scene with cells, found shape {cells.shape}; of a Dask "
            "array of unknown chunks, array.compute_chunk_sizes() finds them"
        )
    if boundary not in (None, *BOUNDARIES):
        raise wrong("predict, boundary", f"one of {BOUNDARIES}", boundary)
    predictor = predictor.in_batches(1)
    names_of = _results(predictor, lengths, tiles, overlap, channels, cells.dtype)
    if names_of:
        return _of_several(
            predictor, scene, names_of, out, tile=tile, overlap=overlap, blend=blend,
            channel=channel, nodata=nodata, boundary=boundary, client=client,
        )  # fmt: skip
    of = predictor, lengths, tiles
    if overlap in ("auto", "field"):
        if blend != "none":
            raise wrong("predict, blend", "'none' where tiles have no seams, or overlap=n", blend)
        exact, padded = overlap == "auto", boundary is not None
        axes, margins = exact_axes(*of, channels, cells.dtype, exact, padded)
    else:
        overlap = whole("predict, overlap", overlap, 0)
        if blend not in BLENDS:
            raise wrong("predict, blend", f"one of {BLENDS}", blend)
        if blend != "none" and not 0 < 2 * overlap <= min(tiles.values()):
            raise wrong("predict, overlap", "at most half a tile where tiles are blended", overlap)
        if blend != "none" and predictor.classes:
            raise wrong("predict, blend", "'none' for classes, which have no mean", blend)
        margins = [0 if boundary is None else overlap] * len(lengths)
        axes = fixed_axes(*of, overlap, channels, cells.dtype, margins[0])
    if nodata is not None:
        _check_nodata(nodata, blend, lengths, axes)
    if any(margins):
        cells = _padded(cells, layout, margins, boundary)
    in_memory = isinstance(cells, np.ndarray) and not isinstance(cells, np.memmap)
    if in_memory and out is None and not client:
        with using(False):  # each tile uses all threads
            tiling = Tiling(predictor, cells, layout, axes, blend, nodata)
            result = tiling.lazy().compute(scheduler="synchronous")
    else:
        lazily = replace(predictor, threads=predictor.threads or 1).snapshot()
        room = room_for_chunks(current_client())
        tiling = Tiling(lazily, cells, layout, axes, blend, nodata, room)
        if out is not None or in_memory:
            tiling = check_memory(tiling, tiles, current_client())
        if out is not None:
            if not isinstance(out, str):
                raise wrong("predict, out", "a path or URL", out)
            dims = _dims(scene, len(tiling.chunks), layout) if labelled else None
            token = tokenize(
                lazily.token, cells.shape, cells.dtype, tiles, overlap, blend, channel, nodata,
                boundary,
            )  # fmt: skip
            if out.lower().endswith((".tif", ".tiff")):
                scales = [axis.scale for axis in axes]
                return written(tiling, out, token, place_of(scene, scales), current_client())
            return stored(tiling, out, token, dims, current_client())
        result = gathered(tiling, client) if in_memory else tiling.lazy()
    return _labelled(scene, result, layout, axes) if labelled else result


def _results(
    predictor: Predictor,
    lengths: tuple[int, ...],
    tiles: dict[Any, int],
    overlap: Any,
    channels: int,
    dtype: Any,
) -> list[Any]:
    """Return the names or numbers of a network's results, none if it has one."""
    margin = overlap if isinstance(overlap, int) else None
    sizes = [
        like_length(n, 64, PROBE) if margin is None else min(n, t + 2 * margin)
        for n, t in zip(lengths, tiles.values(), strict=True)
    ]
    result = predictor(np.zeros((1, *sizes, channels), dtype))
    if isinstance(result, dict):
        return [*result]
    return [*range(len(result))] if isinstance(result, tuple) else []


def _of_several(
    predictor: Predictor, scene: Any, names: list[Any], out: Any, **options: Any
) -> Any:
    """Return each of a network's results for a scene, which may have other resolutions.

    Each needs its own passes.
    """
    if out is not None and (not isinstance(out, Mapping) or set(out) != set(names)):
        raise wrong("predict, out", f"a path for each of the results, a dict by {names}", out)
    results = {
        name: predict_scene(replace(predictor, part=name), scene, out=out and out[name], **options)
        for name in names
    }
    return results if isinstance(names[0], str) else tuple(results.values())


def _padded(cells: Any, layout: Layout, margins: list[int], boundary: str | None) -> Any:
    """Return a scene with more cells on both sides along the axes of the image."""
    lib: Any = np
    if not isinstance(cells, np.ndarray) or isinstance(cells, np.memmap):
        import dask.array as da

        lib, cells = da, cells if isinstance(cells, da.Array) else da.from_array(cells)
    mode: Any = boundary
    for axis, margin in zip(layout.image, margins, strict=True):
        n = cells.shape[axis]
        places = np.pad(np.arange(n), margin, mode=mode)  # dask.array.pad lacks wide margins
        ends = [lib.take(cells, at, axis) for at in (places[:margin], places[margin + n :])]
        cells = lib.concatenate([ends[0], cells, ends[1]], axis)
    return cells


def _check_nodata(nodata: Any, blend: str, lengths: tuple[int, ...], axes: list[Axis]) -> None:
    """Raise an error unless the result can mark cells without data."""
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
        if at is not None and even and at.dtype.kind in "fiu":  # the mean of its cells
            coords[name] = (name, at.values.reshape(axis.length, -1).mean(1), at.attrs)
    return xr.DataArray(result, coords, dims, "prediction", scene.attrs)
