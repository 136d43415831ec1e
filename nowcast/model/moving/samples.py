"""Samples of the moving frame: inputs at random leads and places, made from windows of frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from daskdl.data import Arrays, Recipe
from daskdl.data.batches import generator
from daskdl.data.recipe import Loadable
from nowcast.lagrangian.blocks import enlarge
from nowcast.lagrangian.cascade import Arrival, Cascade, arrivals
from nowcast.lagrangian.exceedance import THRESHOLDS, MarginTable, around, coefficients, dryness
from nowcast.model.moving.features import CHANNELS, cell_side, features, odds_of
from nowcast.rain.frames import WindowRecipe

Float = NDArray[np.float32]

#: Number of places drawn for a sample; the one with the most expected rain is used.
PLACES = 3
#: Largest factor, up or down, of rain rates and of the spacing in augmented samples.
INTENSITY, ZOOM = 2.0, 1.4


@dataclass(frozen=True)
class Draw:
    """Settings of the draw of samples from each window of frames."""

    count: int  #: Samples per window; their lead times are spread evenly.
    cells: int  #: Side of a sample, in cells of `nowcast.model.moving.features.CELL_KM`.
    augment: bool  #: Whether rain rates and spacing get a random factor per window.
    seed: int


@dataclass(frozen=True)
class MovingRecipe(Recipe):
    """Samples ``x`` (cell, cell, channel) float16 and ``y`` (cell, cell) int8 of windows.

    ``x`` has the inputs, followed by the logits of the probabilities to correct, at one pixel of
    each cell; ``y`` is the number of `THRESHOLDS` that were reached there, -1 if missing.
    """

    windows: WindowRecipe = field(repr=False)  #: Windows of whole regions.
    #: Grid spacing and time step of their frames.
    spacing_km: float
    step_minutes: float
    draw: Draw
    table: MarginTable = field(repr=False)

    @property
    def inputs(self) -> Sequence[Loadable]:
        """The windows."""
        return (self.windows,)

    @property
    def decodes(self) -> bool:
        """True, since samples are computed from the frames."""
        return True

    @property
    def nbytes(self) -> int:
        """Bytes of the samples."""
        return len(self) * self.draw.cells**2 * (2 * (CHANNELS + len(THRESHOLDS)) + 1)

    def __len__(self) -> int:
        return len(self.windows) * self.draw.count

    def load(self) -> Arrays:
        """Read the frames, and make the samples."""
        frames = self.windows.load()
        instants = self.windows.source.time.astype("datetime64[s]").astype(np.int64)
        size = self.draw.cells
        x = np.zeros((len(self), size, size, CHANNELS + len(THRESHOLDS)), np.float16)
        y = np.full((len(self), size, size), -1, np.int8)
        for n, (start, row, column) in enumerate(self.windows.windows.tolist()):
            window = frames.take(np.array([n]))
            rng = generator(self.draw.seed, "moving", int(instants[start]), row, column)
            part = slice(n * self.draw.count, (n + 1) * self.draw.count)
            self._fill(window["x"][0, ..., 0], window["y"][0, ..., 0], rng, x[part], y[part])
        return Arrays({"x": x, "y": y})

    def _fill(
        self,
        past: Float,
        observed: Float,
        rng: np.random.Generator,
        x: NDArray[np.float16],
        y: NDArray[np.int8],
    ) -> None:
        """Make the samples of one window; they stay missing where the window has no data."""
        factor, zoom = np.exp2(rng.uniform(-1, 1, 2) * np.log2((INTENSITY, ZOOM)))
        leads = _spread(rng, len(observed), len(x))
        spacing = self.spacing_km
        if self.draw.augment:
            past, observed = past * np.float32(factor), observed * np.float32(factor)
            spacing *= float(zoom)
        past = np.maximum(past, np.float32(0))
        if not all(np.isfinite(frame).any() for frame in past):
            return
        cascade = Cascade.of_past(past, spacing, self.step_minutes)
        for here in arrivals(cascade, int(leads.max()), only=frozenset(leads)):
            inputs = features(cascade, here, self.table)
            for k in np.flatnonzero(leads == here.lead):
                offset = rng.integers(0, cell_side(spacing), 2)
                base, reached = self._pixels(here, observed[here.lead - 1], offset, spacing)
                window = _rainiest(rng, _expected(base, reached), self.draw.cells)
                high, wide = (part.stop - part.start for part in window)
                x[k, :high, :wide] = np.concatenate([inputs[window], base[window]], axis=-1)
                y[k, :high, :wide] = reached[window]

    def _pixels(
        self, here: Arrival, observed: Float, offset: NDArray[np.int64], spacing_km: float
    ) -> tuple[Float, NDArray[np.int8]]:
        """Return base logits (cell, cell, threshold) and reached thresholds at a pixel per cell."""
        side, (height, width) = cell_side(spacing_km), observed.shape
        rows, columns = (
            np.minimum(np.arange(start, n + side - 1, side)[: -(-n // side)], n - 1)
            for start, n in zip(offset.tolist(), (height, width), strict=True)
        )
        at = np.ix_(rows, columns)
        known = np.isfinite(here.rank) & np.isfinite(here.moved)
        table = self.table.at(THRESHOLDS, here.minutes)
        numbers, least = coefficients(here.rank, here.moved, table, THRESHOLDS)
        cells, cell = around(here.moved, THRESHOLDS, table, spacing_km)
        odds = odds_of(here.rank[at], least)[..., np.newaxis]
        dry = dryness(here.expected[at])[..., np.newaxis]
        margin = here.sure[at][..., np.newaxis] * (odds * numbers[:, 0] + numbers[:, 1])
        base = np.nan_to_num(margin + numbers[:, 2] + dry * numbers[:, 3])
        base += np.moveaxis(enlarge(cells, known.shape, cell)[:, *at], 0, -1)
        rain = observed[at]
        levels = np.asarray(THRESHOLDS, np.float32)
        reached = (rain[..., np.newaxis] >= levels).sum(-1).astype(np.int8)
        reached[~(known[at] & np.isfinite(rain))] = -1
        return np.clip(base, -20, 20), reached


def _spread(rng: np.random.Generator, leads: int, count: int) -> NDArray[np.int64]:
    """Draw ``count`` leads from 1 on, one from each of as many equal intervals."""
    at = (np.arange(count) + rng.random(count)) / count * leads
    return np.minimum(at.astype(np.int64), leads - 1) + 1


def _expected(base: Float, reached: NDArray[np.int8]) -> Float:
    """Return the expected number of reached thresholds (cell, cell) by the forecast; 0 if missing.

    Places are chosen by this number, not by the observed one: places chosen by observed rain have
    more rain than their forecasts can know, and a network would learn to forecast too much.
    """
    made: Float = (1 / (1 + np.exp(-base))).sum(-1, dtype=np.float32)
    return np.where(reached >= 0, made, np.float32(0))


def _rainiest(rng: np.random.Generator, expected: Float, cells: int) -> tuple[slice, slice]:
    """Draw squares, and return the one with the largest sum of ``expected`` (cell, cell)."""
    sizes = [min(cells, n) for n in expected.shape]
    best, most = (slice(0, 0), slice(0, 0)), -1.0
    for _ in range(PLACES):
        row, column = (
            int(rng.integers(0, n - s + 1)) for n, s in zip(expected.shape, sizes, strict=True)
        )
        window = slice(row, row + sizes[0]), slice(column, column + sizes[1])
        amount = float(expected[window].sum())
        if amount > most:
            best, most = window, amount
    return best


class Mirrors:
    """Mirrors each sample at random, to one of the eight orientations of a square."""

    def __call__(
        self, batch: dict[str, NDArray[np.generic]], rng: np.random.Generator
    ) -> dict[str, NDArray[np.generic]]:
        """Return ``x`` (N, cell, cell, channel) and ``y`` (N, cell, cell), each changed alike."""
        made = {name: np.empty_like(array) for name, array in batch.items()}
        for n, ways in enumerate(rng.integers(0, 2, (len(batch["x"]), 3))):
            down, across = (slice(None, None, -1 if way else 1) for way in ways[:2])
            for name, array in batch.items():
                turned = array[n, down, across]
                made[name][n] = turned.swapaxes(0, 1) if ways[2] else turned
        return made
