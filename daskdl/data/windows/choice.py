"""Choice of windows: which ones to keep, and how often an epoch draws each."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daskdl.data.batches import generator
from daskdl.data.lazy.joined import without_empty
from daskdl.data.lazy.transformations import stretches
from daskdl.data.on_workers.tasks import on_each
from daskdl.data.partition import Batch, Partition
from daskdl.data.recipe import Recipe
from daskdl.data.sources.zarr import in_partitions
from daskdl.data.windows.grid import check_alike, unnamed, windows_of
from daskdl.data.windows.windows import Windowed, Windows, recipe_of
from daskdl.errors import DataError, SettingsError

if TYPE_CHECKING:
    from daskdl.data.samples import SampleSet

#: Begins the names of maps that are cut with the arrays, and are in no sample.
MAP = "\0"
Array = NDArray[Any]


def from_windows(
    cls: type[SampleSet],
    /,
    data: Any,
    window: Mapping[Hashable, int | None],
    *,
    step: int | Mapping[Hashable, int] | None = None,
    where: Any = None,
    weights: Any = None,
    seed: int = 0,
    partitions: int | None = None,
    **fields: str,
) -> SampleSet:
    """Make a set of windows of arrays of any axes, such as a scene and its mask.

    Windows begin at every ``step``-th cell; cells after the last whole window are in none. A
    partition has the windows of a part of the arrays, some 64 MB, which is read once.

    Parameters
    ----------
    data : mapping of name to array, Dataset, DataArray or array; or a list of these
        Arrays of numpy, Dask, zarr or xarray; a single one is ``x``. An array without one of
        the window's axes is whole in every sample. Along these axes an array may be coarser or
        finer than the first array that has all. The scenes of a list may differ in size.
    window : mapping of name or number of an axis to int or None
        Cells of a window, such as ``{"y": 256, "x": 256}``; None stands for one cell of an axis
        that samples then lack. All other axes are whole, in the arrays' order.
    step : int or mapping of axis to int, optional
        By default a window's cells.
    where : array of bool, or callable, optional
        Keep windows with any true cell of an array over the windows' axes (for several scenes a
        list of arrays), or windows for which ``where(batch)``, (n,), is true. It is computed in
        one pass, at once.
    weights : str, array or callable, optional
        How often each window is drawn: the mean of an array over the window, or
        ``weights(batch)``, (n,). The name of an array of classes makes windows with rare
        classes more frequent. An epoch has as many samples as there are windows, each as often
        as its share of all weights, to within one; each epoch of a fit draws anew.
    seed : int
        Seed of the draw for everything but a fit: ``head``, ``map_batches``, an evaluation.
    partitions : int, optional
    **fields : str
        Variables of a Dataset by name, ``x="image", y="mask"``; by default all, as they are.

    Raises
    ------
    DataError
        When the arrays do not fit together, or no window is left.
    SettingsError
        When the window or the step does not fit the arrays.

    Examples
    --------
    >>> from daskdl import SampleSet
    >>> data = {"x": np.zeros((100, 80, 3)), "y": np.zeros((100, 80), int)}
    >>> samples = SampleSet.from_windows(data, {0: 32, 1: 32}, step=16)
    >>> len(samples), samples.head(2)["x"].shape, samples.head(2)["y"].shape
    (20, (2, 32, 32, 3), (2, 32, 32))
    """
    return in_partitions(
        cls, _recipes(data, window, step, where, weights, seed, fields), partitions
    )


def _recipes(
    data: Any, window: Any, step: Any, where: Any, weights: Any, seed: int, fields: Any
) -> Sequence[Recipe]:
    scenes = list(data) if isinstance(data, list | tuple) else [data]
    maps = [_by_scene("where", where, len(scenes)), _by_scene("weights", weights, len(scenes))]
    cut = [windows_of(scene, window, step, fields) for scene in scenes]
    check_alike([windowed for windowed, _ in cut])
    recipes = [recipe for _, some in cut for recipe in some]
    if where is None and weights is None:
        return recipes
    looks = [_look(windowed, some, *of) for (windowed, some), *of in zip(cut, *maps, strict=True)]
    results = on_each([recipe for some, _ in looks for recipe in some], looks[0][1])
    masks = [keep.astype(bool) for keep, _ in results]
    if not any(keep.any() for keep in masks):
        raise DataError(
            "SampleSet.from_windows, where: expected at least one window that it accepts, "
            f"found none of {sum(map(len, masks))}"
        )
    if weights is None:
        return [r.where(keep) for r, keep in zip(recipes, masks, strict=True) if keep.any()]
    weighed = _weighed(masks, [shares for _, shares in results])
    times = _drawn(np.concatenate(weighed), seed, [len(keep) for keep in masks])
    drawn = [
        recipe_of(
            recipe.windowed,
            np.concatenate([np.repeat(recipe.origins, n, axis=0), recipe.origins[weight > 0]]),
            weight[weight > 0],
        )
        for recipe, n, weight in zip(recipes, times, weighed, strict=True)
        if weight.any()
    ]
    return without_empty(drawn)


def _by_scene(name: str, value: Any, n: int) -> list[Any]:
    """Return an argument for each of ``n`` scenes."""
    if not isinstance(value, list | tuple):
        return [value] * n
    if len(value) != n:
        raise SettingsError(
            f"SampleSet.from_windows, {name}: expected an array for each of {n} scenes, found "
            f"{len(value)}"
        )
    return list(value)


def _look(
    windowed: Windowed, recipes: list[Windows], where: Any, weights: Any
) -> tuple[list[Recipe], Look]:
    """Return recipes of all windows of a scene with its maps, and the function for them."""
    named = weights if isinstance(weights, str) else None
    if named and named not in windowed.arrays:
        raise SettingsError(
            "SampleSet.from_windows, weights: expected the name of an array of classes, one of "
            f"{[*windowed.arrays]}, found {named!r}"
        )
    look = Look(
        where if callable(where) else None, named or (weights if callable(weights) else None)
    )
    # Maps alone are read where they say all.
    arrays = windowed.arrays if look.function or look.weights else {}
    seen = replace(windowed, arrays=arrays, scales={n: windowed.scales[n] for n in arrays})
    for name, cells in (("where", where), ("weights", weights)):
        if cells is not None and cells is not look.function and cells is not look.weights:
            seen = _with_map(seen, name, cells)
    return [recipe_of(seen, recipe.origins) for recipe in recipes], look


def _with_map(windowed: Windowed, name: str, cells: Any) -> Windowed:
    """Return arrays with one more: a map of cells along the windows' axes."""
    cells = cells if hasattr(cells, "shape") else np.asarray(cells)
    names = [axis.name for axis in windowed.axes]
    dims = [*getattr(cells, "dims", names)]
    expected = tuple(a.length for d in dims for a in windowed.axes if a.name == d)
    if tuple(cells.shape) != expected:
        raise DataError(
            f"SampleSet.from_windows, {name}: expected a number for each cell of {expected} along "
            f"{names}, found an array of shape {tuple(cells.shape)}"
        )
    scale = [(names.index(dim), Fraction(1)) for dim in dims]
    return replace(
        windowed,
        arrays={**windowed.arrays, MAP + name: unnamed(cells)},
        scales={**windowed.scales, MAP + name: scale},
    )


@dataclass(frozen=True)
class Look:
    """Decide for all windows of a partition which stay, and their weights.

    ``function`` makes booleans (n,) of a batch. ``weights`` makes numbers (n,), or is the name of
    an array of classes that should all be equally frequent.
    """

    function: Callable[[Batch], Any] | None
    weights: Callable[[Batch], Any] | str | None

    def __call__(self, partition: Partition, number: int) -> tuple[Array, Array]:
        """Return bool (n,), and float (n, k): weights, or cells of each of k classes."""
        keeps, shares = [], []
        for rows in stretches(len(partition), 64):
            batch, n = partition.take(rows), len(rows)
            maps = {name: batch.pop(name) for name in [*batch] if name.startswith(MAP)}
            keep = np.ones(n, bool)
            if MAP + "where" in maps:
                keep = (maps[MAP + "where"] != 0).reshape(n, -1).any(1)
            if self.function is not None:
                keep = _one_each("where", self.function(batch), n).astype(bool)
            if MAP + "weights" in maps:
                share = maps[MAP + "weights"].reshape(n, -1).mean(1, dtype=float)[:, None]
            elif isinstance(self.weights, str):
                share = _cells_by_class(self.weights, batch[self.weights].reshape(n, -1))
            elif self.weights is not None:
                share = _one_each("weights", self.weights(batch), n).astype(float)[:, None]
            else:
                share = np.ones((n, 1))
            keeps.append(keep)
            shares.append(share)
        wide = max(share.shape[1] for share in shares)
        return np.concatenate(keeps), np.concatenate([_wider(share, wide) for share in shares])


def _one_each(name: str, values: Any, n: int) -> Array:
    if np.shape(values) != (n,):
        raise DataError(
            f"SampleSet.from_windows, {name}: expected one value for each of {n} windows, shape "
            f"({n},), found shape {np.shape(values)}"
        )
    return np.asarray(values)


def _cells_by_class(name: str, labels: Array) -> Array:
    """Return the cells (n, classes) of each class from 0 on; negative labels are none."""
    if labels.dtype.kind not in "iub":
        raise DataError(
            f"SampleSet.from_windows, weights: expected {name} to hold classes, whole numbers, "
            f"found {labels.dtype}"
        )
    wide = max(0, int(labels.max(initial=0))) + 1
    return np.stack([np.bincount(row[row >= 0], minlength=wide) for row in labels]).astype(float)


def _wider(share: Array, wide: int) -> Array:
    return np.pad(share, ((0, 0), (0, wide - share.shape[1])))


def _weighed(masks: list[Array], shares: list[Array]) -> list[Array]:
    """Return how often an epoch, with as many windows as are kept, should have each window."""
    wide = max(share.shape[1] for share in shares)
    cells = np.concatenate([_wider(share, wide) for share in shares])
    keep = np.concatenate(masks)
    cells[~keep] = 0
    total = cells.sum(axis=0)
    weights = (cells[:, total > 0] / total[total > 0]).sum(axis=1)
    if not (np.isfinite(cells).all() and (cells >= 0).all() and weights.sum() > 0):
        raise DataError(
            "SampleSet.from_windows, weights: expected finite weights of at least 0, not all of "
            "them 0, found others"
        )
    return _apart(weights / weights.sum() * keep.sum(), [len(some) for some in masks])


def _drawn(weights: Array, seed: int, lengths: list[int]) -> list[Array]:
    """Return how often each window occurs: by its weight, to within one, with the same total."""
    ends, n = np.cumsum(weights), round(weights.sum())
    ends[np.flatnonzero(weights)[-1] :] = n  # not a rounding less
    drawn = np.floor(ends + generator(seed, "windows").random()).astype(np.int64)
    return _apart(np.diff(drawn, prepend=0), lengths)


def _apart(values: Array, lengths: list[int]) -> list[Array]:
    return np.split(values, np.cumsum(lengths)[:-1])
