"""Consistency of the motion over grids: ``python -m ci.bench.motion``.

The same frames on their own grid and averaged over blocks of two and four pixels, each event of
ci.bench.skill: how far the motion fields, in km per step, are apart, relative to the motion.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ci.bench.skill import events
from ci.bench.skill.events import Event
from daskdl.errors import DataError
from nowcast.lagrangian.blocks import block_means, enlarge
from nowcast.lagrangian.motion import motion_field

Float = NDArray[np.float32]

FACTORS = (2, 4)
#: Frames that are read.
N_IN = 3


def motion_km(frames: Float, spacing_km: float) -> Float:
    """Return the motion (2, y, x) in km per step."""
    made: Float = motion_field(frames, spacing_km=spacing_km) * np.float32(spacing_km)
    return made


def differences(event: Event, every: int) -> Iterator[dict[int, float]]:
    """Give, for each start with rain, the relative difference of the motion by factor."""
    height, width = (n // max(FACTORS) * max(FACTORS) for n in event.rain.shape[1:])
    for start in event.starts(N_IN, [event.step], every):
        frames = event.rain[start - N_IN + 1 : start + 1, :height, :width]
        fine = motion_km(frames, event.spacing)
        size = np.sqrt(np.mean(fine**2))
        made = {}
        for factor in FACTORS:
            coarse = np.stack([block_means(frame, factor) for frame in frames])
            motion = enlarge(
                motion_km(coarse, event.spacing * factor), fine.shape[1:], float(factor)
            )
            made[factor] = float(np.sqrt(np.mean((motion - fine) ** 2)) / size)
        yield made


def main() -> None:
    """Print a line each event."""
    parser = argparse.ArgumentParser(prog="python -m ci.bench.motion", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/radar"), help="radar files")
    parser.add_argument(
        "--cache",
        type=Path,
        default=Path(tempfile.gettempdir()) / "nowcast-skill",
        help="folder for the rain stores",
    )
    parser.add_argument("--every", type=int, default=60, help="minutes between starts")
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    head = "".join(f"{f'x {f}: mean':>12}{'most':>7}" for f in FACTORS)
    print(f"{'event':<18}{'km':>5}{'starts':>8}{head}")
    for source in events.available(options.data, options.cache):
        try:
            event = events.load(source, options.data, options.cache)
        except DataError as error:
            print(f"{source.name}: left out: {error}")
            continue
        found = list(differences(event, options.every))
        if not found:
            continue
        line = f"{event.name:<18}{event.spacing:>5.1f}{len(found):>8}"
        for factor in FACTORS:
            values = [one[factor] for one in found]
            line += f"{np.mean(values):>12.1%}{np.max(values):>7.1%}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
