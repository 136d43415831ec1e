"""Windows: the cells of a scene to read for each tile of its result, along each axis."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DaskdlError, SettingsError, ShapeError
from daskdl.predict.predictor import Predictor
from daskdl.predict.scenes.reach import Reach
from daskdl.predict.scenes.rules import reach_of

Array = NDArray[Any]

#: Cells along an axis of the small image whose pass shows the network's reach.
PROBE = 192
#: How many times larger than such an image a sample is whose result is derived from one.
SMALLER = 4


class Window(NamedTuple):
    """One tile along one axis: its results, and the cells to read for it, (start, stop)."""

    results: tuple[int, int]
    cells: tuple[int, int]
    #: Results of the window before the tile's first.
    skipped: int


class Axis(NamedTuple):
    """All windows along one axis."""

    windows: list[Window]
    #: Length of the scene's result.
    length: int
    #: Cells of the scene from one result to the next.
    scale: Fraction
    #: Results of each tile except the last.
    tile: int
    #: Results that a tile shares with its neighbours when they are blended.
    shared: int = 0

    def weights(self, of: int, at: int, blend: str) -> Array:
        """Return the weights of window ``of`` on the results of tile ``at``, float32."""
        start, stop = self.windows[at].results
        place = np.arange(start, stop) + 0.5
        wide = 2 * self.shared
        share = np.ones(stop - start)
        if of > 0:
            share = np.clip((place - of * self.tile + self.shared) / wide, 0, 1)
        if of < len(self.windows) - 1:
            share = share * np.clip(((of + 1) * self.tile + self.shared - place) / wide, 0, 1)
        if blend == "cosine":
            share = (1 - np.cos(np.pi * share)) / 2
        return share.astype(np.float32)


def tiled_results(name: Any, tile: int, scale: Fraction) -> int:
    """Return the number of results of a tile; raise an error unless it is whole."""
    number = tile / scale
    if number.denominator > 1:
        step = scale.numerator
        raise SettingsError(
            f"predict, tile: expected along {name!r} a multiple of {step}, the network's stride, "
            f"found {tile}; take {max(step, tile // step * step)}"
        )
    return int(number)


def exact_axes(
    predictor: Predictor,
    lengths: tuple[int, ...],
    tiles: dict[Any, int],
    channels: int,
    dtype: Any,
    exact: bool,
    padded: bool = False,
) -> tuple[list[Axis], list[int]]:
    """Return windows, as wide as the network's reach, whose tiles equal the whole scene's result.

    ``lengths`` are the scene's along the tiled axes, ``tiles`` a tile's cells by their names;
    ``exact`` means to the last bit. Windows of a ``padded`` scene include margins around it, which
    have no results; the second value is the margins' cells along each axis.
    """
    reaches, probe = _reaches(predictor, lengths, channels, dtype, exact)
    margins = [reach.margin if padded else 0 for reach in reaches]
    if any(margins):
        wide = tuple(n + 2 * m for n, m in zip(lengths, margins, strict=True))
        probe = tuple(
            like_length(n, r.step, max(PROBE, r.least)) for n, r in zip(wide, reaches, strict=True)
        )
        reaches = reach_of(predictor, probe, channels, dtype, exact)
    axes = [
        _exact(name, n, tile, reach, seen, margin)
        for (name, tile), n, reach, seen, margin in zip(
            tiles.items(), lengths, reaches, probe, margins, strict=True
        )
    ]
    return axes, margins


def _reaches(
    predictor: Predictor, lengths: tuple[int, ...], channels: int, dtype: Any, exact: bool
) -> tuple[tuple[Reach, ...], tuple[int, ...]]:
    """Return the reach along each axis of an image, and the lengths of the image that showed it."""
    # Two passes: the first one's steps decide how long an image must be to have the borders of the
    # scene. And never the scene's own length, or resizing to one fixed size would not be noticed.
    probe = tuple(n + 64 if n < PROBE else like_length(n, 64, PROBE) for n in lengths)
    first = reach_of(predictor, probe, channels, dtype, exact)
    probe = tuple(
        like_length(n, r.step, max(PROBE, r.least)) for n, r in zip(lengths, first, strict=True)
    )
    reaches = reach_of(predictor, probe, channels, dtype, exact)
    for one, other in zip(first, reaches, strict=True):
        if one.scale != other.scale or one.step != other.step:
            raise SettingsError(
                "predict, overlap: expected a network that does the same at every size of image, "
                f"found {type(predictor.model).__name__}, which does not; give overlap=n"
            )
    return reaches, probe


def result_of_large(predictor: Predictor, shape: tuple[int, ...], dtype: Any) -> Array | None:
    """Return an empty result (0, ...) for samples (..., channels) that are too large to try.

    None if the images that show it are hardly smaller, or if the network's results see more than a
    window of the sample.
    """
    *lengths, channels = shape
    if math.prod(lengths) < SMALLER * (PROBE + 64) ** len(lengths):
        return None
    try:
        reaches, probe = _reaches(predictor, tuple(lengths), channels, dtype, exact=False)
        like = predictor(np.zeros((1, *probe, channels), dtype))
    except (DaskdlError, ValueError):  # also a network for samples of this size alone
        return None
    sizes = [reach.of(n, m) for reach, n, m in zip(reaches, lengths, probe, strict=True)]
    return np.empty((0, *sizes, *like.shape[1 + len(sizes) :]), like.dtype)


def like_length(n: int, step: int, least: int) -> int:
    """Return a length of at least ``least`` that differs from n by a multiple of a step."""
    return min(n, n % step + -(-least // step) * step)


def _exact(name: Any, n: int, tile: int, reach: Reach, probe: int, margin: int) -> Axis:
    length, size = reach.of(n, probe), tiled_results(name, tile, reach.scale)
    windows, before, n = [], int(margin / reach.scale), n + 2 * margin
    for first in range(before, before + length, size):
        last = min(first + size, before + length)
        seen = math.floor(reach.scale * first + reach.low)
        start = max(0, seen // reach.step * reach.step)
        end = max(math.floor(reach.scale * (last - 1) + reach.high) + 1, start + reach.least)
        stop = (
            start + n % reach.step + -(-(end - start - n % reach.step) // reach.step * reach.step)
        )
        if stop >= n:
            stop = n
            start = min(start, max(0, (n - reach.least) // reach.step * reach.step))
        results = first - before, last - before
        windows.append(Window(results, (start, stop), first - int(start / reach.scale)))
    return Axis(windows, length, reach.scale, size)


def fixed_axes(
    predictor: Predictor,
    lengths: tuple[int, ...],
    tiles: dict[Any, int],
    overlap: int,
    channels: int,
    dtype: Any,
    margin: int = 0,
) -> list[Axis]:
    """Return windows of one size: tiles with ``overlap`` more cells on each side.

    At the scene's borders they are moved inside, so that a network for one size of image works. A
    ``margin`` around the scene, in cells, has no results.
    """
    lengths = tuple(n + 2 * margin for n in lengths)
    sizes = tuple(min(n, t + 2 * overlap) for n, t in zip(lengths, tiles.values(), strict=True))
    results = _lengths(predictor, sizes, channels, dtype)
    scales = [Fraction(w, r) for w, r in zip(sizes, results, strict=True)]
    starts = []
    for (name, tile), scale in zip(tiles.items(), scales, strict=True):
        if 1 not in (scale.numerator, scale.denominator) or overlap / scale % 1:
            raise SettingsError(
                f"predict, overlap: expected along {name!r} results in step with cells, found "
                f"{results} of windows {sizes}; take a tile and an overlap that are multiples of "
                "the network's stride, and a network that pads"
            )
        tiled_results(name, tile, scale)
    for n, w, scale in zip(lengths, sizes, scales, strict=True):
        starts.append((n - w) // scale.numerator * scale.numerator)
    ends = _lengths(
        predictor, tuple(n - s for n, s in zip(lengths, starts, strict=True)), channels, dtype
    )
    axes = []
    for n, w, scale, start, end, tile in zip(
        lengths, sizes, scales, starts, ends, tiles.values(), strict=True
    ):
        before, size = int(margin / scale), int(tile / scale)
        length, windows = int(start / scale) + end - 2 * before, []
        for first in range(0, length, size):
            begin = min(max(0, int(first * scale) + margin - overlap), start)
            stop = n if begin == start else begin + w
            skipped = before + first - int(begin / scale)
            windows.append(Window((first, min(first + size, length)), (begin, stop), skipped))
        axes.append(Axis(windows, length, scale, size, int(overlap / scale)))
    return axes


def _lengths(predictor: Predictor, sizes: tuple[int, ...], channels: int, dtype: Any) -> list[int]:
    image = np.zeros((1, *sizes, channels), dtype)
    result = predictor(image)
    if not isinstance(result, np.ndarray) or result.ndim < len(sizes) + 1:
        shape = getattr(result, "shape", type(result).__name__)
        raise ShapeError(
            f"predict, tile: expected one result with the axes of the tiles, found {shape} of a "
            f"window {image.shape}"
        )
    return [*result.shape[1 : len(sizes) + 1]]
