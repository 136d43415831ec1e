"""Scene: the graph of a prediction by tiles, of arrays in memory, on disk or on a cluster."""

from __future__ import annotations

import itertools
import sys
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from dask.tokenize import tokenize
from numpy.typing import NDArray

from daskdl.cluster.current import using
from daskdl.compat.dask_graph import HighLevelGraph, Task, TaskRef
from daskdl.errors import DataError, SettingsError
from daskdl.predict.arguments import whole, wrong
from daskdl.predict.broadcast import held_by_workers
from daskdl.predict.partitions import only
from daskdl.predict.predictor import Predictor
from daskdl.predict.scenes.store import stored
from daskdl.predict.scenes.windows import Axis, exact_axes, fixed_axes

if TYPE_CHECKING:
    import dask.array as da

Array = NDArray[Any]
Span = tuple[int, int]
#: Where a part of a window lies in it, and in the array that it comes from.
Part = tuple[tuple[slice, ...], tuple[slice, ...]]


class Layout(NamedTuple):
    """Axes of a scene by number: those of samples, of the image in its order, and of channels."""

    samples: tuple[int, ...]
    image: tuple[int, ...]
    channel: int | None

    def images(self, window: Array) -> Array:
        """Return a window of one sample as a model takes it, (1, ..., channels)."""
        order = (*self.samples, *self.image)
        order = order if self.channel is None else (*order, self.channel)
        turned = window.transpose(order)
        turned = turned[..., None] if self.channel is None else turned
        return np.ascontiguousarray(turned.reshape(1, *turned.shape[len(self.samples) :]))

    def order(self, channels: bool) -> list[int]:
        """Return the scene's axes in the order of a result; -1 is a new one of channels."""
        axes = sorted((*self.samples, *self.image))
        if not channels:
            return axes
        return sorted((*axes, self.channel)) if self.channel is not None else [*axes, -1]

    def back(self, result: Array, channels: bool) -> Array:
        """Return a result (1, ..., channels) with its axes in the scene's order."""
        result = result.reshape((1,) * len(self.samples) + result.shape[1:])
        now = [*self.samples, *self.image]
        if channels:
            now.append(-1 if self.channel is None else self.channel)
        else:
            result = result.reshape(result.shape[: len(now)])
        return result.transpose([now.index(axis) for axis in self.order(channels)])


def predict_scene(
    predictor: Predictor,
    scene: Any,
    tile: Mapping[Any, int],
    overlap: int | str = "auto",
    blend: str = "none",
    channel: Any = None,
    out: str | None = None,
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
    in_memory = isinstance(cells, np.ndarray) and not isinstance(cells, np.memmap)
    if in_memory and out is None and not client:
        with using(False):  # each tile with all threads
            result = _graph(predictor, cells, layout, axes, blend).compute(scheduler="synchronous")
    else:
        lazily = replace(predictor, threads=predictor.threads or 1).snapshot()
        result = _graph(lazily, cells, layout, axes, blend)
        if out is not None:
            dims = _dims(scene, result, layout) if labelled else None
            token = tokenize(lazily.token, cells.shape, cells.dtype, tiles, overlap, blend, channel)
            return stored(result, out, token, dims)
        if in_memory:
            result = client.compute(result).result()
    return _labelled(scene, result, layout, axes) if labelled else result


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


def _graph(
    predictor: Predictor, cells: Any, layout: Layout, axes: list[Axis], blend: str
) -> da.Array:
    """Return the lazy result: a task for each tile, or for each window and then each tile."""
    import dask.array as da

    like = _one(predictor, cells, layout, axes)
    channels = like.ndim == len(axes) + 2 and (like.shape[-1] > 1 or layout.channel is not None)
    name = f"scene-{uuid.uuid4().hex}"
    scattered = held_by_workers(predictor)
    model = TaskRef(scattered.key) if hasattr(scattered, "dask") else scattered
    lazy = hasattr(cells, "__dask_graph__")
    tasks: dict[Any, Any] = {} if lazy else {f"{name}-cells": _file_of(cells)}
    samples = [range(cells.shape[axis]) for axis in layout.samples]
    tiles = [range(len(axis.windows)) for axis in axes]
    order = layout.order(channels)
    for sample, number in itertools.product(itertools.product(*samples), itertools.product(*tiles)):
        at = _place(order, layout, sample, number)
        windows = [axis.windows[i] for axis, i in zip(axes, number, strict=True)]
        spans = _spans(cells, layout, sample, [window.cells for window in windows])
        refs, parts = _sources(cells, spans) if lazy else ([TaskRef(f"{name}-cells")], None)
        if blend == "none":
            cut = tuple(slice(w.skipped, w.skipped + w.results[1] - w.results[0]) for w in windows)
            key = (name, *at)
            tasks[key] = Task(key, _tile, model, layout, channels, spans, cut, parts, *refs)
        else:
            key = (f"{name}-window", *sample, *number)
            every = (slice(None),) * len(axes)
            tasks[key] = Task(key, _tile, model, layout, None, spans, every, parts, *refs)
            near = [
                [j for j in (i - 1, i, i + 1) if 0 <= j < len(axis.windows)]
                for axis, i in zip(axes, number, strict=True)
            ]
            shares = [_share(axes, other, number) for other in itertools.product(*near)]
            others = [
                TaskRef((f"{name}-window", *sample, *other)) for other in itertools.product(*near)
            ]
            tasks[name, *at] = Task((name, *at), _blended, layout, channels, shares, *others)
    chunks = {axis: (1,) * cells.shape[axis] for axis in layout.samples}
    for i, axis in zip(layout.image, axes, strict=True):
        chunks[i] = tuple(w.results[1] - w.results[0] for w in axis.windows)
    chunks[-1 if layout.channel is None else layout.channel] = (like.shape[-1],)
    sources = [cells] * lazy + [scattered] * (model is not scattered)
    graph = HighLevelGraph.from_collections(name, tasks, sources)
    return da.Array(graph, name, tuple(chunks[axis] for axis in order), dtype=like.dtype)


def _one(predictor: Predictor, cells: Any, layout: Layout, axes: list[Axis]) -> Array:
    """Return the result of a window of zeros, the smallest."""
    sizes = [min(w.cells[1] - w.cells[0] for w in axis.windows) for axis in axes]
    channels = 1 if layout.channel is None else cells.shape[layout.channel]
    return only(predictor(np.zeros((1, *sizes, channels), cells.dtype)))


def _place(
    order: list[int], layout: Layout, sample: tuple[int, ...], number: tuple[int, ...]
) -> tuple[int, ...]:
    """Return the place of a tile among a result's chunks."""
    places = dict(zip((*layout.samples, *layout.image), (*sample, *number), strict=True))
    return tuple(places.get(axis, 0) for axis in order)


def _spans(cells: Any, layout: Layout, sample: tuple[int, ...], image: list[Span]) -> list[Span]:
    """Return the cells of a window along all axes of a scene."""
    spans = [(0, n) for n in cells.shape]
    for axis, i in zip(layout.samples, sample, strict=True):
        spans[axis] = (i, i + 1)
    for axis, span in zip(layout.image, image, strict=True):
        spans[axis] = span
    return spans


def _sources(cells: Any, spans: list[Span]) -> tuple[list[Any], list[Part]]:
    """Return the chunks of a dask Array in which a window lies, and their parts of it."""
    along = []
    for (start, stop), sizes in zip(spans, cells.chunks, strict=True):
        ends = np.cumsum(sizes)
        first, last = np.searchsorted(ends, [start, stop - 1], side="right")
        chunks = []
        for i in range(int(first), int(last) + 1):
            begin = int(ends[i]) - sizes[i]
            low, high = max(start, begin), min(stop, int(ends[i]))
            chunks.append((i, slice(low - start, high - start), slice(low - begin, high - begin)))
        along.append(chunks)
    refs, parts = [], []
    for chunk in itertools.product(*along):
        refs.append(TaskRef((cells.name, *(i for i, _, _ in chunk))))
        parts.append((tuple(to for _, to, _ in chunk), tuple(of for _, _, of in chunk)))
    return refs, parts


def _tile(
    predictor: Predictor,
    layout: Layout,
    channels: bool | None,
    spans: list[Span],
    cut: tuple[slice, ...],
    parts: list[Part] | None,
    *sources: Any,
) -> Array:
    """Return the result of one window, cut; with ``channels`` in the scene's order of axes."""
    if parts is None:
        source = sources[0]() if isinstance(sources[0], _File) else sources[0]
        window = np.asarray(source[tuple(slice(*span) for span in spans)])
    else:
        shape = tuple(stop - start for start, stop in spans)
        window = np.empty(shape, sources[0].dtype)
        for (to, of), source in zip(parts, sources, strict=True):
            window[to] = source[of]
    result = only(predictor(layout.images(window)))[:, *cut]
    return result if channels is None else np.ascontiguousarray(layout.back(result, channels))


def _share(axes: list[Axis], of: tuple[int, ...], at: tuple[int, ...]) -> Any:
    """Return the cut of a window that lies in a tile, and its weights along each axis."""
    cuts, weights = [], []
    for axis, i, j in zip(axes, of, at, strict=True):
        window, start = axis.windows[i], axis.windows[j].results[0]
        first = window.results[0] - window.skipped
        share = axis.weights(i, j)
        inside = np.flatnonzero(share)
        low, high = (inside[0], inside[-1] + 1) if inside.size else (0, 0)
        cuts.append((slice(start + low - first, start + high - first), slice(low, high)))
        weights.append(share[low:high])
    return cuts, weights, tuple(axis.windows[j].results[1] - axis.windows[j].results[0]
                                for axis, j in zip(axes, at, strict=True))  # fmt: skip


def _blended(layout: Layout, channels: bool, shares: list[Any], *windows: Array) -> Array:
    """Return a tile as the mean of the windows over it, added up in one order."""
    (_, _, shape), like = shares[0], windows[0]
    lead = 1 + len(shape)
    result = np.zeros((1, *shape, *like.shape[lead:]), like.dtype)
    for (cuts, weights, _), window in zip(shares, windows, strict=True):
        part = window[:, *(of for of, _ in cuts)]
        for i, share in enumerate(weights):
            part = part * share.reshape(-1, *(1,) * (window.ndim - 2 - i))
        result[:, *(to for _, to in cuts)] += part
    return np.ascontiguousarray(layout.back(result, channels))


class _File(NamedTuple):
    """A numpy.memmap by its file, which a task opens instead of being sent its numbers."""

    path: str
    dtype: Any
    offset: int
    shape: tuple[int, ...]
    order: str

    def __call__(self) -> Array:
        """Return the array."""
        return np.memmap(self.path, self.dtype, "r", self.offset, self.shape, self.order)  # type: ignore[call-overload]


def _file_of(cells: Any) -> Any:
    """Return a scene as a graph holds it: itself, or the file of a memmap."""
    if not isinstance(cells, np.memmap) or cells.filename is None:
        return cells
    base = cells.base
    if isinstance(base, np.memmap) or not (cells.flags.c_contiguous or cells.flags.f_contiguous):
        raise SettingsError(
            "predict, tile: expected a whole memmap, found a part of one; open the part by "
            "numpy.memmap(..., offset=, shape=), or give numpy.asarray(part)"
        )
    order = "C" if cells.flags.c_contiguous else "F"
    return _File(str(cells.filename), cells.dtype, cells.offset, cells.shape, order)


def _dims(scene: Any, result: Any, layout: Layout) -> list[str]:
    order = layout.order(result.ndim > len(layout.samples) + len(layout.image))
    return ["output" if axis < 0 else str(scene.dims[axis]) for axis in order]


def _labelled(scene: Any, result: Any, layout: Layout, axes: list[Axis]) -> Any:
    """Return the result as a DataArray with the scene's coordinates and attributes."""
    xr = sys.modules["xarray"]
    dims = _dims(scene, result, layout)
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
