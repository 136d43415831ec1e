"""Sums of rain over windows of time, of stores and forecasts, with probabilities from members."""

from __future__ import annotations

import csv
import io
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from daskdl.errors import DataError
from nowcast.rain.cf import describe, history_line
from nowcast.rain.grid import Grid, mean_spacing
from nowcast.rain.identity import path_of
from nowcast.rain.store import in_order, time_step
from nowcast.sums.areas import Areas
from nowcast.sums.between import mean_between, motion_between
from nowcast.sums.dataset import sums_dataset
from nowcast.sums.rules import MINUTE, Rules, length_text

Float = NDArray[np.float32]


def accumulate(
    rain: xr.Dataset,
    over: str | Iterable[Any],
    *,
    every: Any = None,
    amounts: Iterable[float] = (),
    areas: str | os.PathLike[str] | None = None,
    bridge: Any = "30min",
    observed: float = 0.9,
) -> xr.Dataset:
    """Sum up rain over windows of time.

    Between frames rain moves along its motion, so that sums have no stripes.

    Parameters
    ----------
    rain : Dataset
        A rain store (`nowcast.rain.store.open_rain`) or a forecast, ``rain_rate`` in mm h-1.
    over : str or sequence
        Lengths of windows, such as ``"1h,24h"`` or timedeltas.
    every : str or timedelta, optional
        Time between the ends of two windows; by default an hour, or the shortest window. Windows
        end at its multiples: in UTC for a store, from the start for a forecast.
    amounts : sequence of float
        Amounts in mm; the probability of each is the fraction of members whose sum reaches it.
    areas : path, optional
        GeoJSON with polygons and points.
    bridge : str or timedelta
        Longest gap between frames; time in longer gaps does not count as observed.
    observed : float
        Least observed fraction of a window. The observed sum is divided by the fraction.

    Returns
    -------
    Dataset
        ``rain_sum (window, time, y, x)`` in mm, for an ensemble the members' mean; NaN where less
        was observed. ``observed_share``; with amounts ``exceedance_probability (window, amount,
        time, y, x)``; with areas the same for each: ``area_rain_sum (window, time, area)`` ...

    Raises
    ------
    SettingsError, DataError
        When a setting or the data are invalid, or the frames span no window.
    """
    from nowcast.forecasters.file import concatenated

    rules = Rules.of(over, every, amounts, bridge, observed)
    return concatenated(sums(rain, rules, areas), "time")


def sums(
    rain: xr.Dataset,
    rules: Rules,
    areas: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[xr.Dataset]:
    """Yield the sums of `accumulate` time by time; raise DataError if no window is observed."""
    where, rain = path_of(rain), in_order(rain)
    grid = Grid.from_dataset(rain, where=where)
    places = None if areas is None else Areas.read(areas, grid)
    if rules.amounts and "rain_rate_members" not in rain:
        raise DataError(
            f"{where}: expected a forecast with members for the probability of amounts, found "
            "none; predict with --members 20, or leave --amounts out"
        )
    frames = _Frames(rain, where)
    if frames.span < rules.observed * rules.over[-1]:
        raise DataError(
            f"{where}: expected frames over at least {rules.observed:.0%} of "
            f"{length_text(rules.over[-1])}, found {length_text(frames.span)} of them; "
            "sum up over a shorter time, or ask for a smaller share to be observed"
        )
    described = describe(
        title=f"Rain sums, {rain.attrs.get('title', 'rain')}",
        institution=rain.attrs.get("institution", "unknown"),
        source=rain.attrs.get("source", "weather radar"),
        history=f"{history_line('accumulate')}\n{rain.attrs.get('history', '')}".strip(),
        **({"simulated": rain.attrs["simulated"]} if "simulated" in rain.attrs else {}),
    )
    longest = int(rules.over[-1] / rules.every)
    bins: deque[tuple[Float, Float]] = deque(maxlen=longest)
    any_known = False
    for end, amount, share in frames.bins(rules, progress):
        bins.append((amount, share))
        totals, shares = [], []
        for window in rules.over:
            count = int(window / rules.every)
            last = list(bins)[-count:]
            known = sum(s for _, s in last) / np.float32(count)
            enough = known >= np.float32(rules.observed - 1e-4)
            total = sum(a for a, _ in last) / np.where(enough, known, np.float32(1))
            totals.append(np.where(enough, total, np.float32(np.nan)))
            shares.append(known)
        if np.isfinite(totals).any():
            any_known = True
            yield sums_dataset(
                rain, end, rules, np.stack(totals), np.stack(shares), places
            ).assign_attrs(described)
    if not any_known:
        raise DataError(
            f"{where}: expected a window that is observed to {rules.observed:.0%} somewhere, found "
            "none; sum up over a shorter time, or ask for a smaller share to be observed"
        )


class _Frames:
    """Frames of a store or a forecast in time, and their sums between multiples of a step."""

    def __init__(self, rain: xr.Dataset, where: str) -> None:
        self.forecast = "lead_time" in rain["rain_rate"].dims
        self.dimension = "lead_time" if self.forecast else "time"
        self.time: NDArray[np.datetime64] = rain["time"].values.astype("datetime64[ns]")
        self.start = self.time[0]
        self.spacing_km = mean_spacing(rain, where) / 1000
        if self.forecast:
            self.start = rain["forecast_reference_time"].values.astype("datetime64[ns]")
        elif len(self.time) < 2:
            time_step(rain)  # says that one frame is too few
        self.minutes = [float(m) for m in (self.time - self.time[0]) / MINUTE]
        members = rain.get("rain_rate_members")
        best = rain["rain_rate"]

        @lru_cache(maxsize=8)
        def read(position: int) -> Float:
            return best.isel({self.dimension: position}).values.astype(np.float32)

        @lru_cache(maxsize=2)
        def read_all(position: int) -> Float:
            if members is None:
                return read(position)[np.newaxis]
            return members.isel({self.dimension: position}).values.astype(np.float32)

        self.read, self.read_all = read, read_all

    @property
    def span(self) -> np.timedelta64:
        """Time from the start to the last frame."""
        return self.time[-1] - self.start

    def _stretches(self, bridge: np.timedelta64) -> Iterator[Any]:
        """Give (begin, end, frame, frame, motion) of what lies between frames; None in gaps."""
        no_motion = np.zeros((2, *self.read(0).shape), np.float32)
        several = len(self.time) > 1
        if self.start < self.time[0]:
            # Rain before a forecast's first frame is that frame, moved back.
            motion = no_motion
            if several:
                motion = motion_between(self.read, self.minutes, 0, 0, self.spacing_km)
            part = (self.time[0] - self.start) / MINUTE
            step = self.minutes[1] if several else part
            later = self.read_all(0)
            unknown, motion = np.full_like(later, np.nan), motion * np.float32(part / step)
            yield self.start, self.time[0], unknown, later, motion
        first = 0
        for k, length in enumerate(np.diff(self.time)):
            if length > bridge:
                first = k + 1
                yield self.time[k], self.time[k + 1], None, None, no_motion
                continue
            motion = motion_between(self.read, self.minutes, k, first, self.spacing_km)
            yield self.time[k], self.time[k + 1], self.read_all(k), self.read_all(k + 1), motion

    def bins(
        self, rules: Rules, progress: Callable[[int, int], None] | None
    ) -> Iterator[tuple[np.datetime64, Float, Float]]:
        """Give, for each step, its end, the rain in mm (field, y, x), and the share observed."""
        every = rules.every
        epoch = self.start if self.forecast else np.datetime64(0, "ns")
        edge = self.start - (self.start - epoch) % every
        shape = self.read_all(0).shape
        amount, share = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        for done, (begin, end, earlier, later, motion) in enumerate(
            self._stretches(rules.bridge), 1
        ):
            at = begin
            while at < end:
                until = min(end, edge + every)
                if earlier is not None:
                    part = ((at - begin) / (end - begin), (until - at) / (end - begin))
                    mean, known = mean_between(earlier, later, motion, part[0], sum(part))
                    amount += mean * np.float32((until - at) / np.timedelta64(1, "h"))
                    share += known * np.float32((until - at) / every)
                at = until
                if at == edge + every:
                    yield at, amount, share
                    edge = at
                    amount, share = np.zeros_like(amount), np.zeros_like(share)
            if progress is not None:
                progress(done, len(self.time))
        if share.any():
            yield edge + every, amount, share


def accumulate_to(
    out: Path,
    rain: xr.Dataset,
    rules: Rules,
    areas: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Write the sums of `accumulate`, and of areas to a CSV file; return their number."""
    from daskdl.files import replacing
    from nowcast.forecasters.file import write_leads

    table = io.StringIO()
    lines = csv.writer(table, lineterminator="\n")
    heads = ["area", "window", "from", "to", "rain_mm", "observed_share"]
    lines.writerow([*heads, *(f"probability_{amount:g}mm" for amount in rules.amounts)])
    count = 0

    def noted() -> Iterator[xr.Dataset]:
        nonlocal count
        for part in sums(rain, rules, areas, progress):
            count += 1
            if areas is not None:
                lines.writerows(_rows(part, rules))
            yield part

    write_leads(
        noted(), int(_Frames(rain, path_of(rain)).span / rules.every) + 2, out, along="time"
    )
    if areas is not None:
        with replacing(out.with_suffix(".csv")) as temporary:
            temporary.write_text(table.getvalue(), encoding="utf-8")
    return count


def _rows(part: xr.Dataset, rules: Rules) -> Iterator[list[str]]:
    """Yield the rows of the table for one time, with empty cells for missing sums."""
    end = part["time"].values[0]
    for n, name in enumerate(part["area"].values):
        for k, window in enumerate(rules.over):
            numbers: Sequence[float] = [
                part["area_rain_sum"].values[k, 0, n], part["area_observed_share"].values[k, 0, n]
            ]  # fmt: skip
            if rules.amounts:
                numbers += part["area_exceedance_probability"].values[k, :, 0, n].tolist()
            bounds = (f"{t.astype('datetime64[s]')}Z" for t in (end - window, end))
            cells = ("" if np.isnan(value) else f"{value:.3f}" for value in numbers)
            yield [str(name), length_text(window), *bounds, *cells]
