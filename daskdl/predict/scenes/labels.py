"""Labels: numbers of a scene's connected objects, joined where chunks meet, in two passes."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError, SettingsError

Array = NDArray[Any]
Ints = NDArray[np.int64]


class Objects(NamedTuple):
    """The objects of a scene.

    Attributes
    ----------
    labels : dask Array or DataArray, int64
        Number of each cell's object, from 1; 0 without one. Lazy.
    sizes : int64 (n,)
        Number of cells of each object, from object 1 on.

    Examples
    --------
    >>> from daskdl.predict import label_scene
    >>> label_scene(np.array([[1, 0, 2], [1, 0, 2]])).sizes
    array([2, 2])
    """

    labels: Any
    sizes: Ints


class _Part(NamedTuple):
    """Facts of one chunk about its objects."""

    #: (k,): each object's cells, and its first cell's place in the scene, counted row by row.
    sizes: Ints
    first: Ints
    #: Labels and values of the slices at the chunk's borders, by (axis, side).
    faces: dict[tuple[int, int], tuple[Ints, Array]]


def label_scene(scene: Any, background: int = 0, connectivity: int | None = None) -> Objects:
    """Return the connected objects of a scene, as ``skimage.measure.label`` of the whole.

    Numbers follow the objects' first cells, row by row: chunks and workers do not change them. The
    scene is read twice: now, to find each chunk's objects and join them at borders, and when the
    labels are computed.

    Parameters
    ----------
    scene : array of ints or bools, of Dask, zarr, numpy or xarray
        Cells that touch and have one value are one object, such as classes or a mask.
    background : int
        Value without objects.
    connectivity : int, optional
        Most axes of a step between touching cells: 1 is four directions of an image, 2 is eight; by
        default all axes.

    Raises
    ------
    DataError
        When the scene has other numbers.

    Examples
    --------
    >>> from daskdl.predict import label_scene
    >>> mask = np.array([[1, 1, 0, 1], [0, 1, 0, 1]])
    >>> objects = label_scene(mask)
    >>> objects.labels.compute(), objects.sizes
    (array([[1, 1, 0, 2],
           [0, 1, 0, 2]]), array([3, 2]))
    """
    import dask
    import dask.array as da

    named = hasattr(scene, "dims")
    cells = getattr(getattr(scene, "variable", scene), "data", scene) if named else scene
    dtype, shape = getattr(cells, "dtype", type(cells)), getattr(cells, "shape", (0,))
    if getattr(dtype, "kind", "") not in [*"iub"] or not all(n > 0 for n in shape):
        raise DataError(
            f"label_scene: expected whole numbers or booleans, found {dtype} of shape {shape}; "
            "give classes, or a mask, with cells and chunks of known size"
        )
    cells = cells if isinstance(cells, da.Array) else da.from_array(cells)
    connectivity = cells.ndim if connectivity is None else connectivity
    if connectivity not in range(1, cells.ndim + 1):
        raise SettingsError(
            f"label_scene, connectivity: expected 1 to {cells.ndim}, found {connectivity!r}"
        )
    ends = [np.cumsum((0, *sizes)) for sizes in cells.chunks]
    blocks, places = cells.to_delayed(), list(np.ndindex(cells.numblocks))
    part_of, tasks = dask.delayed(_part_of), []
    for place in places:
        corner = [int(e[i]) for e, i in zip(ends, place, strict=True)]
        tasks.append(part_of(blocks[place], corner, cells.shape, background, connectivity))
    results = dask.compute(*tasks)
    starts = np.cumsum([0, *(len(part.sizes) for part in results)])
    parts = dict(zip(places, results, strict=True))
    offsets = dict(zip(places, starts.tolist(), strict=False))
    numbers, sizes = _joined(parts, offsets, _meeting(parts, offsets, cells, ends, connectivity))
    lookup = {p: np.append(0, numbers[o : o + len(parts[p].sizes)]) for p, o in offsets.items()}

    def numbered(block: Array, block_id: tuple[int, ...]) -> Ints:
        return lookup[block_id][_labelled(block, background, connectivity)]

    labels = cells.map_blocks(numbered, dtype=np.int64, meta=np.empty((0,) * cells.ndim, np.int64))
    if hasattr(scene, "coords"):
        labels = scene.copy(data=labels).rename("labels")
    return Objects(labels, sizes)


def _labelled(block: Array, background: int, connectivity: int) -> Ints:
    from skimage.measure import label

    block = block.astype(np.uint8) if block.dtype == bool else block
    return np.asarray(label(block, background=background, connectivity=connectivity))


def _part_of(
    block: Array, corner: list[int], shape: tuple[int, ...], background: int, connectivity: int
) -> _Part:
    labels: Array = _labelled(block, background, connectivity)
    sizes = np.bincount(labels.ravel())[1:]
    numbers, at = np.unique(labels, return_index=True)
    at = at[numbers > 0]
    places = [i + c for i, c in zip(np.unravel_index(at, block.shape), corner, strict=True)]
    faces = {
        (axis, side): (labels.take(side, axis).astype(np.int64), block.take(side, axis))
        for axis in range(block.ndim)
        for side in (0, -1)
    }
    return _Part(sizes, np.ravel_multi_index(tuple(places), shape).astype(np.int64), faces)


def _meeting(
    parts: dict[Any, _Part],
    offsets: dict[Any, int],
    cells: Any,
    ends: list[Ints],
    connectivity: int,
) -> Ints:
    """Return touching pairs of objects of two chunks, (2, n), numbered through all chunks."""
    pairs = [np.empty((2, 0), np.int64)]
    for axis, ends_of in enumerate(ends):
        shape = [n for i, n in enumerate(cells.shape) if i != axis]
        for border in range(len(ends_of) - 2):
            # Whole slices on both sides, since cells also touch across the corners of chunks.
            sides = []
            for index, side in ((border, -1), (border + 1, 0)):
                numbers, values = np.zeros(shape, np.int64), np.zeros(shape, cells.dtype)
                for place in (p for p in parts if p[axis] == index):
                    region = tuple(
                        slice(int(e[i]), int(e[i + 1]))
                        for a, (e, i) in enumerate(zip(ends, place, strict=True))
                        if a != axis
                    )
                    labels, block = parts[place].faces[axis, side]
                    numbers[region] = np.where(labels > 0, labels + offsets[place], 0)
                    values[region] = block
                sides.append((numbers, values))
            one, other = sides
            steps = itertools.product((-1, 0, 1), repeat=len(shape))
            pairs += [
                _touching(one, other, step)
                for step in steps
                if np.count_nonzero(step) < connectivity
            ]
    return np.concatenate(pairs, axis=1)


def _touching(one: tuple[Ints, Array], other: tuple[Ints, Array], step: tuple[int, ...]) -> Ints:
    """Return the objects of two slices that touch by a step along them."""
    here = tuple(slice(max(0, -s), -s if s > 0 else None) for s in step)
    there = tuple(slice(max(0, s), s if s < 0 else None) for s in step)
    a, b = one[0][here].ravel(), other[0][there].ravel()
    same = (a > 0) & (b > 0) & (one[1][here].ravel() == other[1][there].ravel())
    return np.unique(np.stack([a[same], b[same]]), axis=1)


def _joined(parts: dict[Any, _Part], offsets: dict[Any, int], pairs: Ints) -> tuple[Ints, Ints]:
    """Return the scene's number of each chunk's object, ordered by first cells, and all sizes."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    sizes = np.concatenate([parts[p].sizes for p in offsets])
    first = np.concatenate([parts[p].first for p in offsets])
    n = len(sizes)
    if not n:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    graph = coo_array((np.ones(pairs.shape[1], bool), tuple(pairs - 1)), shape=(n, n))
    count, group = connected_components(graph, directed=False)
    least = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(least, group, first)
    rank = np.empty(count, np.int64)
    rank[np.argsort(least)] = np.arange(1, count + 1)
    total = np.zeros(count, np.int64)
    np.add.at(total, rank[group] - 1, sizes)
    return rank[group], total
