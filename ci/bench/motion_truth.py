"""``python -m ci.bench.motion_truth``: the motion found beside the true one of simulated weather.

Of each simulated day at three times: where it rains, the mean distance in km between the
displacement in a step that `motion_field` finds and the flow that carried the rain. A start counts
as wrong where that is more than half of the true displacement.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from nowcast.lagrangian.motion import motion_field
from nowcast.simulate.archive import Days
from nowcast.simulate.regime import draw_regime
from nowcast.simulate.weather import Weather

#: Frames, from 0, that are starts, and the cells that have to be wet there.
STARTS, WET_CELLS = (4, 12, 18), 50
WRONG = 0.5


def starts(days: Days, day: int) -> Iterator[tuple[int, float, float, float]]:
    """Yield frame, wet part, and km in a step: the true displacement, and the distance from it."""
    seed = days.seed + day
    regime = draw_regime(np.random.default_rng((seed, 7)))
    weather = Weather(seed, days.hours * regime.tempo + 1, regime.storms)
    rain = np.stack([*islice(days.frames(day), STARTS[-1] + 1)])
    axis = (np.arange(days.size) - (days.size - 1) / 2) * days.spacing / regime.size
    seconds = days.step_minutes * 60 * regime.tempo
    for frame in STARTS:
        wet = rain[frame] >= 0.1
        if np.count_nonzero(wet) < WET_CELLS:
            continue
        motion = motion_field(
            rain[frame - 2 : frame + 1],
            spacing_km=days.spacing / 1000,
            step_minutes=days.step_minutes,
        )
        wind = weather.motion(frame * seconds, axis[np.newaxis], axis[:, np.newaxis])
        east, north = (_km(component, wet, seconds * regime.size) for component in wind)
        along_y, along_x = (component[wet] * days.spacing / 1000 for component in motion)
        distance = np.hypot(along_x - east, along_y - north)
        yield frame, wet.mean(), np.hypot(east, north).mean(), distance.mean()


def _km(wind: NDArray[np.float64], wet: NDArray[np.bool_], metres: float) -> NDArray[np.float64]:
    return np.broadcast_to(wind, wet.shape)[wet] * metres / 1000


def main() -> None:
    """Print a line for each start, and how many are wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=24)
    parser.add_argument("--step", type=int, default=10, help="minutes")
    parser.add_argument("--seed", type=int, default=9000)
    options = parser.parse_args()
    days = Days(options.days, 4.0, options.step, seed=options.seed)
    parts = []
    for day in range(options.days):
        for frame, wet, speed, distance in starts(days, day):
            parts.append(distance / speed)
            told = "  wrong" if parts[-1] > WRONG else ""
            start = f"day {days.seed + day}, frame {frame:2d}, wet {wet:5.1%}"
            print(f"{start}: {speed:5.1f} km, {distance:5.1f} km off{told}", flush=True)
    wrong = sum(part > WRONG for part in parts)
    print(f"{len(parts)} starts: off by {np.median(parts):.0%} in the median, {wrong} wrong")


if __name__ == "__main__":
    main()
