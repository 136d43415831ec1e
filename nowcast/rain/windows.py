"""Windows of consecutive frames as samples: which to keep, and their events."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daskdl.data.batches import generator
from daskdl.data.lazy.joined import even_bounds
from daskdl.data.samples import SampleSet
from daskdl.errors import DataError, SettingsError
from nowcast.rain.frames import FrameSource, WindowRecipe

if TYPE_CHECKING:
    import xarray as xr

    #: Types of the bounds of a time range.
    Times = tuple[Any, Any] | slice | None


def windows(
    data: str | os.PathLike[str] | xr.Dataset | xr.DataArray,
    variable: str = "rain_rate",
    *,
    n_in: int,
    n_out: int,
    step: Any = None,
    times: Times = None,
    tile: tuple[int, int] | None = None,
    tile_stride: int | tuple[int, int] | None = None,
    stride: int = 1,
    wet_threshold: float = 0.1,
    wet_fraction: float = 0.01,
    keep_dry: float = 1.0,
    max_missing: float = 0.5,
    partitions: int = 1,
    seed: int = 0,
) -> SampleSet:
    """Return all windows of ``n_in`` frames followed by ``n_out`` frames as a SampleSet.

    A sample is ``x`` float32 (n_in, h, w, 1) and ``y`` float32 (n_out, h, w, 1); missing values are
    NaN.

    Parameters
    ----------
    data : path of a zarr store, Dataset or DataArray
        Frames (time, y, x) with increasing times. From a path each worker loads its own frames.
    variable : str
        Name of the variable in a store or a Dataset.
    n_in, n_out : int
        Frames of ``x`` and of ``y``.
    step : timedelta, optional
        Time between frames of a window, by default the most frequent one. The frames of a window
        follow each other by exactly this step; gaps are never bridged.
    times : (first, last) or slice, optional
        Range of a window's frames, both ends included; None is an open end.
    tile : (h, w), optional
        Cut windows into tiles of this size; tiles across the edge are left out.
    tile_stride : int or (down, across), optional
        Cells from one tile to the next, by default the tile's size.
    stride : int
        Frames from the start of one window to the next start, within a gapless run.
    wet_threshold, wet_fraction, keep_dry : float
        A window (of a tile) is dry if fewer than ``wet_fraction`` of its input's known values reach
        ``wet_threshold``. The target does not count: a model that sees only cases in which little
        rain becomes much would learn that it always does. A dry window is kept with probability
        ``keep_dry``, drawn from (seed, time and place of the window) only, so that the choice does
        not depend on partitions or other windows.
    max_missing : float
        A window with a larger fraction of missing values is left out.
    partitions : int
        Number of partitions: periods with nearly equal numbers of windows; at most the number of
        windows.
    seed : int

    Raises
    ------
    DataError
        When the data are not frames as above, or no window is left.
    SettingsError
        When an option is out of range.
    """
    for name, value in {
        "n_in": n_in,
        "n_out": n_out,
        "stride": stride,
        "partitions": partitions,
    }.items():
        if not isinstance(value, int | np.integer) or value < 1:
            raise SettingsError(f"{name}: expected a whole number from 1, found {value!r}")
    for name, fraction in {
        "wet_fraction": wet_fraction,
        "keep_dry": keep_dry,
        "max_missing": max_missing,
    }.items():
        if not 0 <= fraction <= 1:
            raise SettingsError(f"{name}: expected a fraction from 0 to 1, found {fraction!r}")
    source = FrameSource.open(data, variable)
    length = n_in + n_out
    runs, step = gapless_runs(source.time, step, times, length, source.name)
    starts = np.concatenate([np.arange(a, b - length + 1, stride) for a, b in runs])
    size = (source.shape[1], source.shape[2]) if tile is None else tile
    corners = tile_corners(source.shape[1:], size, tile_stride, source.name)
    used = np.unique(starts[:, None] + np.arange(length))
    wet, valid = source.count(used, corners, size, wet_threshold)
    places = np.searchsorted(used, starts)
    wet_in, valid_in = (_window_sums(counts, places, n_in) for counts in (wet, valid))
    total_valid = _window_sums(valid, places, length)
    # Quotients are rounded as literals are: 7 / 10 == 0.7; 0.7 * 10 or (1 - 0.7) * 10 may be off.
    cells = length * size[0] * size[1]
    enough = (cells - total_valid) / cells <= max_missing
    dry = wet_in / np.maximum(valid_in, 1) < wet_fraction
    keep = enough.copy()
    if keep_dry < 1:
        instants = source.time[starts].astype("datetime64[ns]").astype(np.int64)
        for i, j in np.argwhere(enough & dry):
            draw = generator(seed, "dry window", int(instants[i]), *map(int, corners[j]))
            keep[i, j] = draw.random() < keep_dry
    remaining = np.argwhere(keep)
    if not len(remaining):
        raise DataError(
            f"{source.name}: expected at least one window of {n_in} + {n_out} frames to train on, "
            f"found {keep.size}: {int((~enough).sum())} have more than {max_missing:.0%} "
            f"missing values and {int((enough & dry).sum())} are dry; raise max_missing or keep_dry"
        )
    chosen = np.column_stack([starts[remaining[:, 0]], corners[remaining[:, 1]]])
    bounds = even_bounds(len(chosen), min(partitions, len(chosen)))
    recipes = (WindowRecipe(source, chosen[a:b], n_in, n_out, size) for a, b in pairwise(bounds))
    return SampleSet([recipe.localised() for recipe in recipes])


def gapless_runs(
    time: NDArray[np.datetime64], step: Any, times: Times, length: int, name: str
) -> tuple[list[tuple[int, int]], np.timedelta64]:
    """Return the stretches (start, stop) of frames without gaps, and their step.

    The step is by default the most frequent one, of equally frequent ones the shortest. Both ends
    of ``times`` are included; runs of fewer than ``length`` frames are left out. Raises DataError
    about the data ``name`` if there is no run.
    """
    if times is None:
        first, last = None, None
    elif isinstance(times, slice):
        if times.step is not None:
            raise SettingsError(f"times: expected a slice without a step, found {times}")
        first, last = times.start, times.stop
    elif isinstance(times, tuple | list) and len(times) == 2:
        first, last = times
    else:
        raise SettingsError(f"times: expected (first, last) or a slice, found {times!r}")
    begin = 0 if first is None else int(np.searchsorted(time, _instant(first), "left"))
    end = len(time) if last is None else int(np.searchsorted(time, _instant(last), "right"))
    end = max(begin, end)
    steps = np.diff(time[begin:end])
    if step is None and len(steps):
        values, counts = np.unique(steps, return_counts=True)
        step = values[np.argmax(counts)]
    step = _duration(step)
    breaks = np.flatnonzero(steps != step) + begin + 1
    edges = [begin, *breaks.tolist(), end]
    runs = [(a, b) for a, b in pairwise(edges) if b - a >= length]
    if not runs:
        longest = max((b - a for a, b in pairwise(edges)), default=0)
        longest_is = f"the longest stretch has {longest}" if end > begin else "there are none"
        span = f" from {first} to {last}" if times is not None else ""
        minutes = step / np.timedelta64(1, "m")
        raise DataError(
            f"{name}: expected at least {length} consecutive frames"
            f"{'' if np.isnat(step) else f' {minutes:g} min apart'}{span}, found {end - begin} "
            f"frames of which {longest_is}; give another step or time range, or fewer frames a "
            "window"
        )
    return runs, step


def tile_corners(
    shape: Sequence[int], tile: tuple[int, int], stride: int | tuple[int, int] | None, name: str
) -> NDArray[np.int64]:
    """Return the (row, column) of each tile's first cell, int64 (n, 2)."""
    steps = tile if stride is None else (stride, stride) if isinstance(stride, int) else stride
    for option, pair in {"tile": tile, "tile_stride": steps}.items():
        if np.shape(pair) != (2,) or min(pair) < 1:
            raise SettingsError(f"{option}: expected two numbers of cells from 1, found {pair!r}")
    if tile[0] > shape[0] or tile[1] > shape[1]:
        raise DataError(
            f"{name}: expected a grid of at least one tile of {tile[0]} x {tile[1]} cells, found "
            f"{shape[0]} x {shape[1]}; give a smaller tile, or none for the whole grid"
        )
    rows, columns = (np.arange(0, n - t + 1, s) for n, t, s in zip(shape, tile, steps, strict=True))
    return np.stack(np.meshgrid(rows, columns, indexing="ij"), -1).reshape(-1, 2)


def _window_sums(
    counts: NDArray[np.int64], starts: NDArray[np.int64], length: int
) -> NDArray[np.int64]:
    total = np.zeros((len(counts) + 1, counts.shape[1]), np.int64)
    np.cumsum(counts, axis=0, out=total[1:])
    return total[starts + length] - total[starts]


def _instant(value: Any) -> np.datetime64:
    try:
        return np.datetime64(value, "ns")
    except (ValueError, TypeError) as error:
        raise SettingsError(
            f"times: expected a time such as 2010-08-26T03:00, found {value!r}"
        ) from error


def _duration(value: Any) -> np.timedelta64:
    if value is None:
        return np.timedelta64("NaT")
    try:
        step = np.timedelta64(value)
        if np.datetime_data(step)[0] == "generic" or not step > np.timedelta64(0):
            raise ValueError("no unit, or not positive")
    except (ValueError, TypeError) as error:
        raise SettingsError(
            f"step: expected a positive timedelta such as timedelta(minutes=5), found {value!r}"
        ) from error
    return step.astype("timedelta64[ns]")


#: Length of the dry pause that ends an event, and the greatest length of an event.
PAUSE = np.timedelta64(6 * 3600, "s")
LONGEST = np.timedelta64(24 * 3600, "s")
#: Least fraction of wet pixels, among the scored ones, that counts as rain.
WET = 0.01


def event_labels(
    archive: NDArray[np.integer], time: NDArray[np.datetime64], wet: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return the number of every case's event, (case,) int64: 0, 0, ... 1, 1, ...

    A new event begins with another archive, with the first rain after a pause of six hours, and 24
    hours after the last event began (weather changes more within a day than within an hour). Dry
    cases belong to the event before them.

    - ``archive``, ``time``, ``wet`` (case,): number of each case's rain store, increasing; its
      start, increasing within an archive; and the fraction of scored pixels with rain.

    Examples
    --------
    >>> hours = np.array([0, 1, 2, 9, 10], "timedelta64[h]")
    >>> wet = np.array([0.1, 0.1, 0.0, 0.2, 0.2])
    >>> event_labels(np.zeros(5, int), np.datetime64("2020-01-01T00") + hours, wet)
    array([0, 0, 0, 1, 1])
    """
    labels = np.zeros(len(time), np.int64)
    event, began, last_rain = 0, time[0], time[0]
    for i in range(len(time)):
        if i and archive[i] != archive[i - 1]:
            event, began, last_rain = event + 1, time[i], time[i]
        elif (wet[i] >= WET and time[i] - last_rain >= PAUSE) or time[i] - began >= LONGEST:
            event, began = event + 1, time[i]
        if wet[i] >= WET:
            last_rain = time[i]
        labels[i] = event
    return labels
