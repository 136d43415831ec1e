"""``python -m ci.bench.cells``: tracking of cells compared with tobac and pysteps' DATing.

Simulated storms of known paths, each with its motion about a common wind, grow, fade, cross and
merge. A storm counts while its peak is 15 mm/h or more and no other storm is within 10 km. It is
found where a cell lies within 8 km, kept where one track has 80 % of its time, and switches where
its track changes from one frame to the next. tobac needs ``pip install tobac``.

``--events a.zarr b.zarr`` takes rain stores of 1 km and 5 min, and of each the 256 x 256 km and
three hours with the most strong rain. A storm is then a peak of 8 mm/h (smoothed over 1.5 km, with
no other within 10 km) that block matching of 25 x 25 km finds in the next frame, and from there
back again: this path does not depend on any of the methods.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from scipy.optimize import linear_sum_assignment
from skimage.feature import match_template, peak_local_max

import nowcast
from nowcast.cells.outline import label_cells
from nowcast.rain.cf import rain_dataset
from nowcast.rain.grid import Grid
from nowcast.rain.store import open_rain

SIZE, STEP, FRAMES = 256, 5, 36
GRID = Grid.around(50.0, 5.0, size=(SIZE, SIZE), spacing=1000.0)
# DATing needs three frames for its motion, so no method is judged on the first three.
FIRST = 3
VISIBLE, APART, NEAR, KEPT = 15.0, 10.0, 8.0, 0.8
# Real storms: peak in mm/h; cells on each side of a block, and of its motion in a frame; least
# correlation; largest error in cells of the match back, and distance of a match from its peak.
REAL, HALF, REACH, ALIKE, BACK, SNAP = 8.0, 12, 10, 0.7, 2.0, 4.0


class Mark(NamedTuple):
    """A storm or a cell in a frame: its number, place in km (x, y), and motion in m/s or NaN."""

    number: int
    place: NDArray[np.float64]
    motion: NDArray[np.float64]


def storms(seed: int, count: int = 30) -> tuple[NDArray[np.float32], list[list[Mark]]]:
    """Return rain (frame, y, x) in mm h-1 and the storms of each frame that count."""
    rng = np.random.default_rng((seed, 41))
    minutes = STEP * np.arange(FRAMES)
    wind = rng.uniform(6, 14) * np.array([np.cos(a := rng.uniform(0, 6.28)), np.sin(a)])
    motion = wind + rng.normal(0, 2.5, (count, 2))
    middle, birth = rng.uniform(20, SIZE - 20, (count, 2)), rng.uniform(-60, 150, count)
    life, peak = rng.uniform(40, 120, count), rng.lognormal(np.log(40), 0.4, count)
    radius, tilt = rng.uniform(3, 7, (count, 2)), rng.uniform(0, np.pi, count)
    y, x = np.mgrid[:SIZE, :SIZE].astype(np.float32)
    rain, marks = np.zeros((FRAMES, SIZE, SIZE), np.float32), []
    noise = _noise(rng)
    for frame, now in zip(rain, minutes, strict=True):
        age = np.clip((now - birth) / life, 0, 1)
        strength = peak * np.sin(np.pi * age**0.75)
        place = middle + motion * 0.06 * (now - birth - life / 2)[:, None]
        for (px, py), (a, b), angle, value in zip(place, radius, tilt, strength, strict=True):
            if value > 0.1:
                along = (x - px) * np.cos(angle) + (y - py) * np.sin(angle)
                across = (y - py) * np.cos(angle) - (x - px) * np.sin(angle)
                frame += value * np.exp(-0.5 * ((along / a) ** 2 + (across / b) ** 2))
        frame *= np.exp(0.4 * next(noise))
        frame[frame < 0.1] = 0
        inside = (place > 10).all(1) & (place < SIZE - 10).all(1)
        seen = np.flatnonzero((strength >= VISIBLE) & inside)
        rival = np.flatnonzero(strength > 3)
        marks.append([
            Mark(int(k), place[k], motion[k]) for k in seen
            if not any(j != k and np.hypot(*(place[j] - place[k])) < APART for j in rival)
        ])  # fmt: skip
    return rain, marks


def _noise(rng: np.random.Generator) -> Iterator[NDArray[np.float32]]:
    """Yield noise of unit variance over 2 km, correlated by 0.74 from frame to frame."""
    state = np.zeros((SIZE, SIZE), np.float32)
    while True:
        fresh = gaussian_filter(rng.standard_normal((SIZE, SIZE)), 2)
        state = np.float32(0.74) * state + np.float32(0.67) * (fresh / fresh.std())
        yield state


def real_storms(path: str) -> tuple[NDArray[np.float32], list[list[Mark]]]:
    """Return rain (frame, y, x) of a store in mm h-1 and the storms of each frame that count."""
    with open_rain(path) as store:
        rain = np.nan_to_num(store["rain_rate"].values)
    total = np.pad((rain >= 10).sum((1, 2)), (1, 0)).cumsum()
    rain = rain[(first := int((total[FRAMES:] - total[:-FRAMES]).argmax())) : first + FRAMES]
    total = np.pad((rain >= 10).sum(0), ((1, 0), (1, 0))).cumsum(0).cumsum(1)
    inside = total[SIZE:, SIZE:] - total[:-SIZE, SIZE:] - total[SIZE:, :-SIZE]
    y, x = np.unravel_index((inside + total[:-SIZE, :-SIZE]).argmax(), inside.shape)
    rain = rain[:, y : y + SIZE, x : x + SIZE]
    smooth = gaussian_filter(rain, (0, 1.5, 1.5))
    decibel = 10 * np.log10(np.maximum(smooth, 0.1))
    followed: dict[int, tuple[int, ...]] = {}
    marks, number, still = [], 0, np.full(2, np.nan)
    for k, field in enumerate(smooth):
        peaks = peak_local_max(field, min_distance=4, threshold_abs=REAL, exclude_border=10)
        before, followed = followed, {}
        for storm, place in before.items():
            there = _matched(decibel[k - 1], decibel[k], np.array(place))
            back = None if there is None else _matched(decibel[k], decibel[k - 1], there)
            if back is None or np.hypot(*(back - place)) > BACK or not len(peaks):
                continue
            apart = np.hypot(*(peaks - there).T)
            peak = tuple(peaks[apart.argmin()].tolist())
            if apart.min() <= SNAP and peak not in followed.values():
                followed[storm] = peak
        for peak in map(tuple, peaks.tolist()):
            if peak not in followed.values():
                followed[number], number = peak, number + 1
        rivals = peak_local_max(field, min_distance=4, threshold_abs=3, exclude_border=False)
        marks.append([
            Mark(storm, np.array(peak[::-1], float), still) for storm, peak in followed.items()
            if (np.hypot(*(rivals - peak).T) < APART).sum() == 1
        ])  # fmt: skip
    return rain, marks


def _matched(
    first: NDArray[np.float32], second: NDArray[np.float32], place: NDArray[np.int64]
) -> NDArray[np.int64] | None:
    """Return the (row, column) to which the block around a place moved, None without a match."""
    around = (place - HALF - REACH).min(), (place + HALF + REACH).max()
    if around[0] < 0 or around[1] >= SIZE:
        return None
    block, wide = (
        field[tuple(slice(at - side, at + side + 1) for at in place)]
        for field, side in ((first, HALF), (second, HALF + REACH))
    )
    alike = match_template(wide, block)
    best = np.array(np.unravel_index(alike.argmax(), alike.shape))
    return place + best - REACH if alike.max() >= ALIKE else None


def by_nowcast(rain: NDArray[np.float32]) -> list[list[Mark]]:
    """Follow by `nowcast.track_cells`."""
    start = np.datetime64("2020-06-01", "ns")
    times = start + STEP * np.arange(FRAMES) * np.timedelta64(1, "m")
    origin = {"title": "storms", "source": "simulated"}
    dataset = rain_dataset(GRID, times, rain, attributes={}, global_attributes=origin)
    marks: list[list[Mark]] = [[] for _ in range(FRAMES)]
    labelled = -1
    for cell in nowcast.track_cells(dataset):
        frame = int((np.datetime64(cell.time[:-1]) - start) / np.timedelta64(STEP, "m"))
        if frame > labelled:
            labelled, number = frame, 0
            labels = label_cells(rain[frame], threshold=1.0, saddle=0.8, smooth=1.5, least=10.0)
        number += 1
        place = _peak(rain[frame], *np.nonzero(labels == number))
        angle = np.radians(np.nan if cell.direction_deg is None else cell.direction_deg)
        speed = np.nan if cell.speed_m_s is None else cell.speed_m_s
        way = speed * np.array([np.sin(angle), np.cos(angle)])
        marks[frame].append(Mark(cell.track, place, way))
    return marks


def _peak(
    rain: NDArray[np.float32], rows: NDArray[np.int64], columns: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the place (x, y) in km of the strongest smoothed rain among some pixels."""
    strongest = gaussian_filter(rain, 1.5)[rows, columns].argmax()
    return np.array([columns[strongest], rows[strongest]], float)


def by_tobac(rain: NDArray[np.float32]) -> list[list[Mark]]:
    """Follow by tobac: features over four thresholds, linked by trackpy with prediction."""
    import tobac
    import trackpy
    import xarray as xr

    trackpy.quiet()

    times = np.datetime64("2020-06-01", "ns") + STEP * np.arange(FRAMES) * np.timedelta64(1, "m")
    axis = np.arange(SIZE) * 1000.0
    field = xr.DataArray(
        rain, dims=("time", "y", "x"), coords={"time": times, "y": axis, "x": axis}, name="rain"
    )
    detected = tobac.feature_detection_multithreshold(
        field, dxy=1000, threshold=[5, 10, 20, 40], target="maximum",
        position_threshold="weighted_diff", sigma_threshold=1.5, n_min_threshold=10,
    )  # fmt: skip
    linked = tobac.linking_trackpy(
        detected, field, dt=60 * STEP, dxy=1000, v_max=20, method_linking="predict", stubs=1
    )
    marks: list[list[Mark]] = [[] for _ in range(FRAMES)]
    for row in linked.itertuples():
        place = np.array([row.hdim_2, row.hdim_1])
        marks[int(row.frame)].append(Mark(int(row.cell), place, np.full(2, np.nan)))
    return marks


def by_dating(rain: NDArray[np.float32]) -> list[list[Mark]]:
    """Follow by pysteps' DATing with its defaults."""
    from pysteps.tracking.tdating import dating

    with np.errstate(divide="ignore"):
        dbz = np.where(rain > 0, 10 * np.log10(200 * rain**1.6), -32.0)
    names = [f"2020060100{STEP * k:04d}" for k in range(FRAMES)]
    _, cells, _ = dating(dbz, names, mintrack=1)
    marks: list[list[Mark]] = [[] for _ in range(FRAMES)]
    for frame, table in enumerate(cells, start=FRAMES - len(cells)):
        for row in table.itertuples():
            place = _peak(rain[frame], np.array(row.y, int), np.array(row.x, int))
            marks[frame].append(Mark(int(row.ID), place, np.full(2, np.nan)))
    return marks


METHODS: dict[str, Callable[[NDArray[np.float32]], list[list[Mark]]]] = {
    "nowcast": by_nowcast, "tobac": by_tobac, "DATing": by_dating
}  # fmt: skip


def judge(truth: list[list[Mark]], marks: list[list[Mark]]) -> Counter[str]:
    """Count storms seen, found, kept and switched, cells and motions; sum squared motion errors."""
    tracks: dict[int, list[int]] = {}
    counts: Counter[str] = Counter()
    for storm_marks, cells in zip(truth[FIRST:], marks[FIRST:], strict=True):
        apart = np.array([[np.hypot(*(s.place - c.place)) for c in cells] for s in storm_marks])
        apart = apart.reshape(len(storm_marks), len(cells))
        rows, columns = linear_sum_assignment(np.minimum(apart, 2 * NEAR))
        pairs = {r: c for r, c in zip(rows, columns, strict=True) if apart[r, c] <= NEAR}
        counts["cells"] += len(cells)
        for k, storm in enumerate(storm_marks):
            cell = cells[pairs[k]] if k in pairs else None
            tracks.setdefault(storm.number, []).append(-1 if cell is None else cell.number)
            counts["seen"] += 1
            counts["found"] += cell is not None
            if cell is not None and np.isfinite(storm.motion + cell.motion).all():
                counts["motions"] += 1
                counts["mm2_s2"] += round(1e6 * float(np.square(storm.motion - cell.motion).sum()))
    for numbers in tracks.values():
        matched = [number for number in numbers if number >= 0]
        counts["switches"] += sum(a != b for a, b in pairwise(matched))
        if len(numbers) >= 4:
            usual = Counter(matched).most_common(1)
            counts["storms"] += 1
            counts["kept"] += bool(usual) and usual[0][1] >= KEPT * len(numbers)
    return counts


def main() -> None:
    """Print a row for each method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="of three hours, each of 30 storms")
    parser.add_argument("--events", nargs="+", default=[], help="rain stores of real events")
    parser.add_argument("--methods", default=",".join(METHODS))
    options = parser.parse_args()
    print("method     found   kept  switches/storm  motion error m/s  cells/storm  s/frame")
    runs = {"simulated": [storms(seed) for seed in range(options.runs)]}
    runs |= {path: [real_storms(path)] for path in options.events}
    for source, name in product(filter(runs.get, runs), options.methods.split(",")):
        total: Counter[str] = Counter()
        began = time.perf_counter()
        for rain, truth in runs[source]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                total += judge(truth, METHODS[name](rain))
        seconds = (time.perf_counter() - began) / FRAMES / len(runs[source])
        error = np.sqrt(total["mm2_s2"] / max(total["motions"], 1)) / 1000 or np.nan
        print(
            f"{name:10} {total['found'] / total['seen']:5.1%}"
            f" {total['kept'] / total['storms']:6.1%}"
            f" {total['switches'] / total['storms']:12.2f} {error:17.2f}"
            f" {total['cells'] / total['seen']:12.2f} {seconds:9.3f}"
            f"  {total['storms']} storms, {source}",
            flush=True,
        )


if __name__ == "__main__":
    main()
