"""Rain stores for training a model: opened, resampled to one step and spacing, and split."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self, cast

import numpy as np

from daskdl.errors import DataError
from nowcast.model.settings import TrainSettings
from nowcast.model.split import Split, Stretch, frames_ahead, split_by_rain, stretch
from nowcast.rain.grid import grid_spacing, mean_spacing
from nowcast.rain.identity import name_of, path_of
from nowcast.rain.resample import resampled
from nowcast.rain.store import open_rain, time_step

if TYPE_CHECKING:
    import xarray as xr

    from daskdl.data import Recipe, SampleSet
    from nowcast.rain.frames import WindowRecipe

#: Stride, in cells along y and x, of the sample for a frame's wet fraction.
SAMPLE = 4
#: Least number of stores from which whole ones are reserved for validation and test.
FEWEST_WHOLE = 8


@dataclass(frozen=True, eq=False)
class Archive:
    """A store at the step and spacing of the model."""

    store: xr.Dataset  #: The store as opened.
    #: Rain rate in mm h-1, lazily resampled to the model's step and spacing, (time, y, x).
    rain: xr.DataArray
    as_stored: bool  #: Whether the rain is the store's, not resampled.
    step: np.timedelta64  #: Time between frames.

    @property
    def spacing_km(self) -> float:
        """Spacing of the grid in km, as in forecasts, also for oblong cells; see `mean_spacing`."""
        return mean_spacing(self.rain, path_of(self.store)) / 1000

    @classmethod
    def open(cls, path: Path, step: np.timedelta64 | None, spacing: float | None) -> Self:
        """Open a store and resample it to a step, and a spacing in m; by default to its own."""
        store = open_rain(path)
        step = (time_step(store) if step is None else step).astype("m8[ns]")
        spacing = abs(grid_spacing(store, str(path))[1]) if spacing is None else spacing
        stored = store["rain_rate"]
        rain = resampled(stored, step, spacing, str(path))
        return cls(store, rain, rain is stored, step)

    @cached_property
    def name(self) -> str:
        """Name of the store in a model's records, see `nowcast.rain.identity.name_of`."""
        return name_of(self.store)

    @property
    def data(self) -> str | xr.DataArray:
        """Source of windows: the store's path, which workers open, or the resampled rain."""
        return os.fspath(path_of(self.store)) if self.as_stored else self.rain

    def wet(self, threshold: float) -> np.ndarray:
        """Return the wet fraction of each frame by a rain rate, (time,), from a sample of cells."""
        sample = self.rain[:, ::SAMPLE, ::SAMPLE]
        known = sample.notnull().sum(("y", "x"))
        return np.asarray((sample >= threshold).sum(("y", "x")) / known.where(known > 0, 1))


def common_step_and_spacing(
    paths: Sequence[Path], step: np.timedelta64 | None, spacing: float | None
) -> tuple[np.timedelta64, float]:
    """Return the step and spacing in m for all stores: the given, or the longest and the first's.

    Raises DataError if a store cannot be opened or the first grid's mesh is not square.
    """
    stores = [open_rain(path) for path in paths]
    longest = max(time_step(store) for store in stores)
    along_y, along_x = grid_spacing(stores[0], str(paths[0]))
    if spacing is None and not abs(along_y - along_x) <= 0.05 * along_x:
        raise DataError(
            f"{paths[0]}: expected a square mesh, found {along_y:g} m by {along_x:g} m; choose one "
            "with --set spacing_km=KM"
        )
    return longest if step is None else step, along_x if spacing is None else spacing


def split_archives(
    train: Sequence[Archive],
    validate: Sequence[Archive],
    test: Sequence[Archive],
    settings: TrainSettings,
    n_in: int,
) -> Split:
    """Return the split of all archives, or of stretches of them, into parts.

    Archives in ``validate`` and ``test`` belong to these parts entirely. If both are empty, the
    last of `FEWEST_WHOLE` or more archives are used for them. Of fewer archives, each that is long
    enough is cut by its rain, see `split_by_rain`; the others are for training.

    - ``n_in``: number of input frames.
    """
    if not validate and not test and len(train) >= FEWEST_WHOLE:
        first, second = (
            round(len(train) * share) for share in (settings.fractions[0], sum(settings.fractions))
        )
        train, validate, test = train[:first], train[first:second], train[second:]
    parts: dict[str, list[Stretch]] = {"train": [], "validation": [], "test": []}
    for name, archives in (("validation", validate), ("test", test)):
        parts[name] += [stretch(a.name, a.rain["time"].values) for a in archives]
    if parts["validation"] and parts["test"]:
        parts["train"] += [stretch(a.name, a.rain["time"].values) for a in train]
        return Split(*(tuple(stretches) for stretches in parts.values()))
    least = {a.name: n_in + frames_ahead(settings.lead_minutes, a.step) for a in train}
    long = [archive for archive in train if archive.rain.sizes["time"] >= 3 * least[archive.name]]
    for archive in train:
        time = archive.rain["time"].values
        if long and archive not in long:
            parts["train"].append(stretch(archive.name, time))
            continue
        cut = split_by_rain(
            archive.name, time, archive.wet(settings.wet_threshold), settings.fractions,
            least[archive.name],
        )  # fmt: skip
        # Stretches that no other part needs are for training too.
        parts["train"] += cut.train
        parts["train" if validate else "validation"] += cut.validation
        parts["train" if test else "test"] += cut.test
    return Split(*(tuple(stretches) for stretches in parts.values()))


def training_windows(
    archives: Sequence[Archive],
    stretches: Sequence[Stretch],
    n_out: int,
    settings: TrainSettings,
    say: Callable[[str], None] = lambda _: None,
) -> SampleSet:
    """Return the windows of frames in stretches, in mm h-1; each shard has windows of each archive.

    Raises DataError if there is no window, or a grid is smaller than a block.
    """
    from daskdl.data import SampleSet
    from daskdl.data.lazy.joined import join

    block = settings.block
    smallest = [min(a.rain.sizes[axis] for a in archives) for axis in ("y", "x")]
    high, wide = (min(settings.tile, size) // block * block for size in smallest)
    if min(high, wide) == 0:
        raise DataError(
            f"{archives[0].name}: expected at least {block} cells along y and x, found "
            f"{smallest[0]} x {smallest[1]}; ingest with a larger --size or a finer --spacing"
        )
    shards: list[list[Recipe]] = [[] for _ in range(settings.shards)]
    for _, recipes_of in window_recipes(
        archives, stretches, settings.n_in, n_out, settings, (high, wide), settings.tile_stride, say
    ):
        for shard, recipe in zip(shards, recipes_of, strict=False):
            shard.append(recipe)
    return SampleSet([join(recipes) for recipes in shards if recipes])


def window_recipes(
    archives: Sequence[Archive],
    stretches: Sequence[Stretch],
    n_in: int,
    n_out: int,
    settings: TrainSettings,
    tile: tuple[int, int],
    stride: int,
    say: Callable[[str], None],
) -> list[tuple[Archive, list[WindowRecipe]]]:
    """Return the windows of each stretch of each archive, one recipe per shard.

    Raises DataError if there is no window at all.
    """
    from nowcast.rain.windows import windows

    made: list[tuple[Archive, list[WindowRecipe]]] = []
    failed: list[DataError] = []
    for archive in archives:
        for part in stretches:
            inside = archive.rain["time"].values
            if (
                part.store != archive.name
                or not ((inside >= part.first) & (inside <= part.last)).any()
            ):
                continue
            try:
                samples = windows(
                    archive.data,
                    variable="rain_rate",
                    n_in=n_in,
                    n_out=n_out,
                    step=archive.step,
                    times=(part.first, part.last),
                    tile=tile,
                    tile_stride=stride,
                    wet_threshold=settings.wet_threshold,
                    wet_fraction=settings.wet_fraction,
                    keep_dry=settings.keep_dry,
                    max_missing=settings.max_missing,
                    partitions=settings.shards,
                    seed=settings.seed,
                )
            except DataError as error:
                failed.append(error)
                continue
            made.append((archive, cast("list[WindowRecipe]", list(samples.recipes))))
    if not made:
        raise failed[0] if failed else DataError("training windows: expected stretches, found none")
    for reason in failed:
        say(f"left out: {reason}")
    return made
