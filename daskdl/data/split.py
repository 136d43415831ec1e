"""Split: samples cut at random into sets without common samples, or without common cells."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.data.batches import generator, interleaved
from daskdl.data.lazy.blocks import refuse_blocks
from daskdl.data.lazy.derived import select_from
from daskdl.data.lazy.joined import without_empty
from daskdl.data.lazy.transformations import Permuted
from daskdl.data.recipe import Recipe
from daskdl.data.windows.windows import Axis, Windows
from daskdl.errors import SettingsError

Shares = NDArray[np.float64]


def split(
    recipes: Sequence[Recipe], fractions: Sequence[float], seed: int, blocks: Any
) -> list[list[Recipe]]:
    """Return recipes of each set; see :meth:`SampleSet.split`."""
    shares = np.asarray(fractions, float)
    if shares.ndim != 1 or not len(shares) or (shares <= 0).any() or shares.sum() > 1 + 1e-9:
        raise SettingsError(
            f"SampleSet.split: expected positive fractions that add up to at most 1, found "
            f"{fractions!r}"
        )
    refuse_blocks("split", recipes)
    pieces = [piece for recipe in recipes for piece in recipe.pieces]
    windows = [piece for piece in pieces if isinstance(piece, Windows)]
    if blocks is not None:
        if len(windows) < len(pieces):
            raise SettingsError(
                "SampleSet.split, blocks: expected the windows of SampleSet.from_windows, found "
                "other samples; split them before map_batches(), filter() and persist()"
            )
        return _in_space(windows, shares, seed, blocks)
    if windows and len(shares) > 1:
        _warn(windows)
    return _at_random(recipes, shares, seed)


def _at_random(recipes: Sequence[Recipe], shares: Shares, seed: int) -> list[list[Recipe]]:
    lengths = [len(recipe) for recipe in recipes]
    n = sum(lengths)
    whole = np.round(np.cumsum([0, *shares]) * n).astype(int)
    sizes = [*np.diff(whole).tolist(), n - int(whole[-1])]
    owners = interleaved(sizes)
    parts: list[list[Recipe]] = [[] for _ in shares]
    for i, (a, b) in enumerate(pairwise(np.cumsum([0, *lengths]).tolist())):
        bounds = np.cumsum([0, *np.bincount(owners[a:b], minlength=len(sizes))]).tolist()
        for part, (start, stop) in zip(parts, pairwise(bounds), strict=False):
            which = Permuted(seed, "split", i, start, stop, sort=True)
            part.append(select_from(recipes[i], which, stop - start))
    return parts


def _warn(windows: Sequence[Windows]) -> None:
    """Warn about sets that share cells or have neighbouring ones."""
    axes = windows[0].windowed.axes
    near = [axis for axis in axes if axis.keep and axis.step <= axis.size < axis.length]
    overlap = [axis for axis in axes if axis.step < axis.size]
    several = any(len(np.unique(one.once, axis=0)) < len(one) for one in windows)
    if not (near or overlap or several):
        return
    why, share = "lie side by side", "are much alike"
    if overlap or several:
        why = "are drawn several times" if several else f"overlap along {overlap[0].name!r}"
        share = "share cells"
    blocks = {axis.name: 4 * axis.size for axis in axes if axis.keep}
    warnings.warn(
        f"SampleSet.split: the windows {why}, so that the sets {share}, and one tells little about "
        f"what was learned from the other; give blocks, such as {blocks}",
        stacklevel=4,
    )


def _in_space(
    windows: Sequence[Windows], shares: Shares, seed: int, blocks: Mapping[Any, int]
) -> list[list[Recipe]]:
    """Return windows by the owner of their blocks, without windows of two owners."""
    numbers: list[NDArray[np.int64]] = []
    scenes: dict[int, int] = {}
    n = 0
    for one in windows:
        sizes, counts = _sizes(one.windowed.axes, blocks)
        first = scenes.setdefault(id(one.windowed), n)
        n = max(n, first + math.prod(counts))
        # A window is no larger than a block, and touches two along each axis at most.
        extents = np.array([axis.size - 1 for axis in one.windowed.axes])
        corners = np.array(np.meshgrid(*[[0, 1]] * len(sizes), indexing="ij"))
        corners = corners.reshape(len(sizes), -1).T
        blocks_of = [_block(one.origins + corner * extents, sizes, counts) for corner in corners]
        numbers.append(first + np.stack(blocks_of, 1))
    touched = [some[: len(one)] for one, some in zip(windows, numbers, strict=True)]
    inside = np.bincount(np.concatenate(touched)[:, 0], minlength=n)
    order = generator(seed, "blocks").permutation(n)
    middle = np.cumsum(inside[order]) - inside[order] / 2
    owners = np.empty(n, np.int64)
    owners[order] = np.searchsorted(np.cumsum(shares) * inside.sum(), middle, side="right")
    parts: list[list[Recipe]] = [[] for _ in shares]
    for one, block in zip(windows, numbers, strict=True):
        of = owners[block]
        whole = (of == of[:, :1]).all(axis=1)
        for i, part in enumerate(parts):
            mine = whole & (of[:, 0] == i)
            if mine.any():
                part.append(one.where(mine))
    parts = [without_empty(part) for part in parts]
    if not all(parts):
        raise SettingsError(
            f"SampleSet.split, blocks: expected windows in each of {len(parts)} sets, found none "
            f"that lie in the blocks of set {parts.index([])}; take smaller blocks"
        )
    return parts


def _sizes(axes: Sequence[Axis], blocks: Mapping[Any, int]) -> tuple[list[int], list[int]]:
    """Return the cells of a block along each axis, and the number of blocks."""
    names = [axis.name for axis in axes]
    if not isinstance(blocks, Mapping) or not blocks or not set(blocks) <= set(names):
        raise SettingsError(
            f"SampleSet.split, blocks: expected cells by axis, of {names}, found {blocks!r}"
        )
    sizes = [blocks.get(axis.name, axis.length) for axis in axes]
    for axis, size in zip(axes, sizes, strict=True):
        if not isinstance(size, int | np.integer) or size < axis.size:
            raise SettingsError(
                f"SampleSet.split, blocks: expected whole cells along {axis.name!r}, at least a "
                f"window's {axis.size}, found {size!r}"
            )
    return sizes, [math.ceil(axis.length / size) for axis, size in zip(axes, sizes, strict=True)]


def _block(cells: NDArray[np.int64], sizes: list[int], counts: list[int]) -> NDArray[np.int64]:
    return np.ravel_multi_index(tuple((cells // sizes).T), counts).astype(np.int64)
