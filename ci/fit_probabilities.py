"""Fit the rank margins of `sprog` to real events: ``python -m ci.fit_probabilities``.

Prints the table that stands in nowcast/forecasters/margins.py, fitted to all radars, and writes
those fitted without each radar to ci/bench/skill/left_out.json, by which ci.bench.skill judges.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ci.bench.skill import events
from ci.bench.skill.events import Event
from daskdl.errors import DataError
from nowcast.forecasters.forecast import THRESHOLDS
from nowcast.forecasters.lagrangian.advection import carry, departures
from nowcast.forecasters.lagrangian.cascade import Cascade
from nowcast.forecasters.lagrangian.exceedance import (
    AT_MINUTES,
    MarginTable,
    dryness,
    logit,
)
from nowcast.forecasters.lagrangian.ranks import ranks

#: Lead times in minutes that are fitted, as far as they are whole steps.
LEADS = (5, 10, 15, 20, 30, 40, 50, 60)
#: Frames that are read, and pixels of a frame that are drawn.
N_IN, PIXELS = 3, 2500
#: Weight of numbers that stay at 0, so that rare thresholds cannot run away.
RIDGE = 1.0
LEFT_OUT = Path(__file__).parent / "bench" / "skill" / "left_out.json"


@dataclass(frozen=True)
class Sample:
    """Pixels of one start and lead time.

    Parameters
    ----------
    radar : str
    doublings : float
        Of the lead time from `AT_MINUTES`.
    odds : ndarray, (pixel,) float64
        Logit of the rank in the expected field.
    wet : ndarray, (threshold,) float64
        Logit of the fraction of the last frame, moved, that reaches each threshold.
    dry : ndarray, (pixel,) float64
        See `nowcast.forecasters.lagrangian.exceedance.dryness`.
    observed : ndarray, (pixel,) float32
        Rain rate in mm h-1.
    """

    radar: str
    doublings: float
    odds: NDArray[np.float64]
    wet: NDArray[np.float64]
    dry: NDArray[np.float64]
    observed: NDArray[np.float32]


def samples(event: Event, every: int) -> Iterator[Sample]:
    """Draw pixels of all starts of an event, the same ones each time."""
    rng = np.random.default_rng(0)
    leads = [lead // event.step for lead in LEADS if lead % event.step == 0]
    for start in event.starts(N_IN, [leads[-1] * event.step], every):
        cascade = Cascade.of(event.rain[start - N_IN + 1 : start + 1], spacing_km=event.spacing)
        fields = cascade.expected(leads[-1])
        paths = departures(cascade.motion, leads[-1])
        for lead, (field, points) in enumerate(zip(fields, paths, strict=True), start=1):
            if lead not in leads:
                continue
            observed, moved = event.rain[start + lead], carry(cascade.last, points)
            expected = carry(field, points)
            known = np.isfinite(observed) & np.isfinite(moved) & np.isfinite(expected)
            count = int(known.sum())
            if count < PIXELS:
                continue
            least = 0.5 / count
            rank = ranks(np.where(known, expected, np.float32(np.nan))).ravel()
            drawn = rng.choice(np.flatnonzero(known), PIXELS, replace=False)
            share = [(moved[known] >= np.float32(t)).mean() for t in THRESHOLDS]
            yield Sample(
                event.radar,
                float(np.log2(lead * event.step / AT_MINUTES)),
                logit(np.clip(rank[drawn], least, 1 - least)),
                logit(np.clip(share, least, 1 - least)),
                dryness(expected).ravel()[drawn].astype(np.float64),
                observed.ravel()[drawn],
            )


def fit(drawn: list[Sample]) -> MarginTable:
    """Fit by maximum likelihood; each radar has the same weight, however long its event is."""
    pixels = dict.fromkeys((s.radar for s in drawn), 0)
    for sample in drawn:
        pixels[sample.radar] += len(sample.odds)
    doublings = np.concatenate([np.full(len(s.odds), s.doublings) for s in drawn])
    weight = np.concatenate([np.full(len(s.odds), 1e5 / pixels[s.radar]) for s in drawn])
    dry = np.concatenate([s.dry for s in drawn])
    observed = np.concatenate([s.observed for s in drawn])
    numbers = []
    for k, threshold in enumerate(THRESHOLDS):
        wet = np.concatenate([np.full(len(s.odds), s.wet[k]) for s in drawn])
        margin = np.concatenate([s.odds for s in drawn]) + wet
        event = observed >= np.float32(threshold)
        numbers.append(np.round(_fisher(margin, wet, dry, doublings, event, weight), 3))
    pairs = [tuple((float(n[c]), float(n[c + 1])) for n in numbers) for c in (0, 2, 4, 6)]
    return MarginTable(THRESHOLDS, *pairs)


def _fisher(
    margin: NDArray[np.float64],
    wet: NDArray[np.float64],
    dry: NDArray[np.float64],
    doublings: NDArray[np.float64],
    event: NDArray[np.bool_],
    weight: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the pairs of slope, wet, offset and dry in a row.

    By Fisher's scoring, with the logarithm of the slope linear in the doublings.
    """
    numbers = np.array([0.5, -0.5, 0, 0, 0, 0, 0, 0])
    for _ in range(60):
        steep = np.exp(numbers[0] + numbers[1] * doublings) * margin
        parts = [steep, wet, np.ones_like(wet), dry]
        x = np.stack([c for part in parts for c in (part, part * doublings)], axis=1)
        z = steep + x[:, 2:] @ numbers[2:]
        p = 1 / (1 + np.exp(-np.clip(z, -30, 30)))
        upward = x.T @ (weight * (event - p)) - RIDGE * numbers
        curvature = (x * (weight * p * (1 - p))[:, None]).T @ x + RIDGE * np.eye(8)
        change = np.clip(np.linalg.solve(curvature, upward), -0.3, 0.3)
        numbers += change
        if np.abs(change).max() < 1e-5:
            break
    numbers[:2] = np.exp(numbers[:2])
    return numbers


def main() -> None:
    """Fit to all radars and to all but each."""
    parser = argparse.ArgumentParser(prog="python -m ci.fit_probabilities", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/radar"), help="radar files")
    parser.add_argument(
        "--cache",
        type=Path,
        default=Path(tempfile.gettempdir()) / "nowcast-skill",
        help="folder for the rain stores",
    )
    parser.add_argument("--every", type=int, default=20, help="minutes between starts")
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    drawn: list[Sample] = []
    for source in events.available(options.data, options.cache):
        try:
            event = events.load(source, options.data, options.cache)
        except DataError as error:
            print(f"{source.name}: left out: {error}", file=sys.stderr)
            continue
        mine = list(samples(event, options.every))
        print(f"{source.name}: {len(mine)} starts and leads", file=sys.stderr, flush=True)
        drawn += mine
    print(f"SHIPPED = {fit(drawn)!r}")
    radars = sorted({s.radar for s in drawn})
    left_out = {r: asdict(fit([s for s in drawn if s.radar != r])) for r in radars}
    LEFT_OUT.write_text(json.dumps(left_out, indent=1) + "\n")


if __name__ == "__main__":
    main()
