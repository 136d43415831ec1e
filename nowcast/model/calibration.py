"""Calibration: rank margins fitted to archives, and their file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daskdl.cluster.bounded import Died, in_order, in_task
from daskdl.data.batches import generator
from daskdl.errors import ClusterError, DataError
from daskdl.files import replacing
from nowcast.lagrangian.blocks import Surroundings
from nowcast.lagrangian.cascade import Cascade, arrivals
from nowcast.lagrangian.exceedance import (
    AT_MINUTES,
    SHIPPED,
    THRESHOLDS,
    MarginTable,
    check_table,
    dryness,
    logit,
)
from nowcast.lagrangian.frames import frames_back
from nowcast.model.archives import Archive
from nowcast.model.split import minutes
from nowcast.rain.store import expecting

if TYPE_CHECKING:
    import xarray as xr
    from distributed import Client

Float = NDArray[np.float32]

#: Lead times in minutes for the fit, if they are whole numbers of steps.
LEADS = (5, 10, 15, 20, 30, 40, 50, 60, 90, 120)
#: Number of pixels drawn from a frame.
PIXELS = 2500
#: Weight of the ridge towards the prior, so that numbers of rare thresholds cannot diverge.
RIDGE = 1.0
#: Total weight of the pixels of one archive.
WEIGHT = 1e5
#: Least wet fraction of a frame that counts as rain; smaller grids have fewer drawn pixels.
LEAST_WET = 0.02
#: Pairs of numbers of a table, one of every threshold.
PAIRS = ("slope", "wet", "offset", "dry", "near", "wide")
#: Side in pixels of the middle square that is read from a large grid, wherever it rains most.
LARGEST = 1024


@dataclass(frozen=True)
class Sample:
    """Pixels of one start and lead time."""

    source: str  #: The radar or archive; all have the same weight, whatever their length.
    doublings: float  #: Doublings of the lead time from `AT_MINUTES`.
    odds: NDArray[np.float64]  #: Logit of the rank in the expected field, (pixel,).
    #: Logit of the fraction of the last frame, after motion, that reaches each threshold,
    #: (threshold,) float64.
    wet: NDArray[np.float64]
    #: See `nowcast.lagrangian.cascade.Arrival` and `nowcast.lagrangian.exceedance.dryness`,
    #: (pixel,).
    sure: NDArray[np.float64]
    dry: NDArray[np.float64]
    #: See `nowcast.lagrangian.blocks.Surroundings`, (threshold, pixel).
    near: Float
    wide: Float
    observed: Float  #: Rain rate in mm h-1, (pixel,).


def draw(
    source: str,
    past: Float,
    observed: Float,
    leads: Sequence[int],
    rng: np.random.Generator,
    *,
    spacing_km: float,
    step_minutes: float,
) -> Iterator[Sample]:
    """Draw pixels of a start for some leads, which are counted in steps from 1.

    ``past`` (time, y, x) is the rain rate in mm h-1 up to the start, ``observed`` (lead, y, x) the
    rain rate after it.
    """
    cascade = Cascade.of_past(past, spacing_km, step_minutes)
    for here in arrivals(cascade, max(leads), only=frozenset(leads)):
        truth = observed[here.lead - 1]
        known = np.isfinite(truth) & np.isfinite(here.moved) & np.isfinite(here.rank)
        count = int(known.sum())
        if count < PIXELS:
            continue
        least = 0.5 / count
        drawn = rng.choice(np.flatnonzero(known), PIXELS, replace=False)
        share = [(here.moved[known] >= np.float32(t)).mean() for t in THRESHOLDS]
        around = Surroundings.of(here.moved, THRESHOLDS, spacing_km).at_pixels(known.shape)
        near, wide = (field.reshape(len(THRESHOLDS), -1)[:, drawn] for field in around)
        yield Sample(
            source,
            float(np.log2(here.minutes / AT_MINUTES)),
            logit(np.clip(here.rank.ravel()[drawn], least, 1 - least)),
            logit(np.clip(share, least, 1 - least)),
            here.sure.ravel()[drawn].astype(np.float64),
            dryness(here.expected).ravel()[drawn].astype(np.float64),
            near,
            wide,
            truth.ravel()[drawn],
        )


def fit(drawn: Sequence[Sample], prior: MarginTable | None = None) -> MarginTable:
    """Fit a table by maximum likelihood; each source has the same weight.

    - ``prior``: table to which few data are pulled; by default numbers are pulled to 0.
    """
    pixels = dict.fromkeys((s.source for s in drawn), 0)
    for sample in drawn:
        pixels[sample.source] += len(sample.odds)
    doublings = np.concatenate([np.full(len(s.odds), s.doublings) for s in drawn])
    weight = np.concatenate([np.full(len(s.odds), WEIGHT / pixels[s.source]) for s in drawn])
    sure, dry, odds, observed = (
        np.concatenate([getattr(s, name) for s in drawn])
        for name in ("sure", "dry", "odds", "observed")
    )
    numbers = []
    for k, threshold in enumerate(THRESHOLDS):
        wet = np.concatenate([np.full(len(s.odds), s.wet[k]) for s in drawn])
        around = [np.concatenate(parts) for parts in zip(*((s.near[k], s.wide[k]) for s in drawn),
                                                         strict=True)]  # fmt: skip
        event = observed >= np.float32(threshold)
        begin = np.array([0.5, -0.5] + [0] * 10)
        first_guess = np.zeros(12)
        if prior is not None:
            slope, *pairs = (getattr(prior, name)[k] for name in PAIRS)
            first_guess = np.concatenate([np.log(slope), *pairs])
            begin = first_guess.copy()
        parts = np.stack([wet, np.ones_like(wet), dry, *around], axis=1)
        margin = sure * (odds + wet)
        fitted = _fisher(margin, parts, doublings, event, weight, begin, first_guess)
        numbers.append(np.round(fitted, 3))
    made = [tuple((float(n[c]), float(n[c + 1])) for n in numbers) for c in range(0, 12, 2)]
    return MarginTable(THRESHOLDS, *made)


def calibrate(
    paths: Sequence[Path],
    *,
    starts: int = 200,
    lead_minutes: float = 60.0,
    progress: Callable[[int, int], None] | None = None,
    client: Client | None = None,
) -> tuple[MarginTable, int]:
    """Fit the rank margin to rain stores.

    - ``starts``: number of forecast starts from all stores, at times with rain.
    - ``lead_minutes``: longest lead time of the fit.
    - ``client``: cluster that draws from the stores; without one, this process draws.
    - returns ``used``: number of starts that were found.
    - raises DataError if no store has rain with frames after it.
    """
    drawn: list[Sample] = []
    used = 0
    for number, path in enumerate(paths):
        archive = Archive.open(path, None, None)
        step = minutes(archive.step)
        leads = [round(lead / step) for lead in LEADS if lead % step == 0 and lead <= lead_minutes]
        leads = leads or [1]
        chosen = _starts(archive, max(leads), max(1, starts // len(paths)))
        before = frames_back(step)
        spans = (slice(start - before + 1, start + 1 + max(leads)) for start in chosen)
        calls = (
            (number, start, archive.name, archive.rain.isel(time=span), leads, before,
             archive.spacing_km, step)
            for start, span in zip(chosen, spans, strict=True)
        )  # fmt: skip
        for (_, start, *_), samples in in_order(
            client, in_task(client, _of_start), calls, "calibrate"
        ):
            if isinstance(samples, Died):
                raise ClusterError(f"calibrate: the start {start} of {path}: {samples.reason}")
            drawn += samples
            used += 1
            if progress is not None:
                progress(used, max(used, min(starts, len(chosen) * len(paths))))
    if not drawn:
        raise DataError(
            f"{paths[0]}: expected frames with rain in {LEAST_WET:.0%} of the grid and "
            f"{lead_minutes:g} min of frames after them, of at least {PIXELS} cells, found none; "
            "give more stores, or a shorter --lead"
        )
    return fit(drawn, SHIPPED), used


def _of_start(
    number: int, start: int, name: str, rain: xr.DataArray, leads: Sequence[int], before: int,
    spacing_km: float, step: float,
) -> list[Sample]:  # fmt: skip
    """Draw from one start; its frames end with the frame of the longest lead."""
    rng = generator(0, "calibrate", number, start)
    frames = _frames(rain)
    made = draw(
        name, frames[:before], frames[before:], leads, rng, spacing_km=spacing_km,
        step_minutes=step,
    )  # fmt: skip
    return list(made)


def write_table(table: MarginTable, path: Path, about: dict[str, Any]) -> None:
    """Write a table as JSON, with plain data about its origin."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps({"rank_margin": asdict(table), **about}, indent=1) + "\n")


def read_table(path: Path) -> MarginTable:
    """Read a table that `write_table` wrote.

    Raises DataError if the file is missing or is no table.
    """
    with expecting(path, "a file that nowcast calibrate wrote", "make it with nowcast calibrate"):
        numbers = json.loads(path.read_text())["rank_margin"]
        pairs = [
            tuple((float(first), float(change)) for first, change in numbers.get(name, ()))
            for name in PAIRS
        ]
        table = MarginTable(tuple(map(float, numbers["thresholds"])), *pairs)
        check_table(table)
        return table


def _starts(archive: Archive, leads: int, most: int) -> list[int]:
    """Return the last input frame of up to ``most`` evenly spaced starts with rain, as indices."""
    time = archive.rain["time"].values
    wet = archive.wet(0.1) >= LEAST_WET
    before = frames_back(minutes(archive.step)) - 1
    whole = (before + leads) * archive.step
    candidates = [
        i
        for i in range(before, len(time) - leads)
        if wet[i] and time[i + leads] - time[i - before] == whole
    ]
    if len(candidates) <= most:
        return candidates
    return [candidates[k] for k in np.linspace(0, len(candidates) - 1, most).astype(int)]


def _frames(rain: xr.DataArray) -> Float:
    """Read frames; of a large grid only the middle square."""
    for axis in ("y", "x"):
        over = max(0, rain.sizes[axis] - LARGEST) // 2
        rain = rain.isel({axis: slice(over, over + LARGEST)})
    return np.maximum(rain.values.astype(np.float32, copy=False), np.float32(0))


def _fisher(
    margin: NDArray[np.float64],
    parts: NDArray[np.float64],
    doublings: NDArray[np.float64],
    event: NDArray[np.bool_],
    weight: NDArray[np.float64],
    begin: NDArray[np.float64],
    prior: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the fitted pairs of the slope and of each of ``parts`` (pixel, part), as one vector.

    The fit is Fisher's scoring; the logarithm of the slope is linear in the doublings.
    """
    numbers = begin
    x = np.empty((len(margin), len(begin)))
    x[:, 2::2] = parts
    x[:, 3::2] = parts * doublings[:, np.newaxis]
    for _ in range(60):
        steep = np.exp(numbers[0] + numbers[1] * doublings) * margin
        x[:, 0], x[:, 1] = steep, steep * doublings
        z = steep + x[:, 2:] @ numbers[2:]
        p = 1 / (1 + np.exp(-np.clip(z, -30, 30)))
        upward = x.T @ (weight * (event - p)) - RIDGE * (numbers - prior)
        curvature = (x * (weight * p * (1 - p))[:, None]).T @ x + RIDGE * np.eye(len(begin))
        change = np.clip(np.linalg.solve(curvature, upward), -0.3, 0.3)
        numbers = numbers + change
        if np.abs(change).max() < 1e-5:
            break
    numbers = numbers.copy()
    numbers[:2] = np.exp(numbers[:2])
    return numbers
