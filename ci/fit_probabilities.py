"""Fit the rank margins of `sprog` to real events: ``python -m ci.fit_probabilities``.

Prints the ROWS of nowcast.lagrangian.exceedance; writes margins without each radar for the bench.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple
from pathlib import Path

import numpy as np

from ci.bench.skill import events
from ci.bench.skill.events import Event
from nowcast.lagrangian.frames import frames_back
from nowcast.model.calibration import LEADS, Sample, draw, fit

#: Radars to fit; the others are for testing only.
RADARS = ("knmi", "bom66", "fmi", "mch", "opera")
LEFT_OUT = Path(__file__).parent / "bench" / "skill" / "left_out.json"


def samples(of_radar: Sequence[Event], every: int, most: int) -> Iterator[Sample]:
    """Yield random pixels at starts of a radar's events, evenly spaced, the same in each call."""
    starts = [
        (event, start)
        for event in of_radar
        for start in event.starts(frames_back(event.step), [max(LEADS)], every)
    ]
    for k in np.linspace(0, len(starts) - 1, min(most, len(starts))).astype(int):
        event, start = starts[k]
        leads = [lead // event.step for lead in LEADS if lead % event.step == 0]
        past = event.rain[start - frames_back(event.step) + 1 : start + 1]
        yield from draw(
            event.radar, past, event.rain[start + 1 :], leads, np.random.default_rng(start),
            spacing_km=event.spacing, step_minutes=event.step,
        )  # fmt: skip


def main() -> None:
    """Fit to all radars, and to all without each."""
    parser = argparse.ArgumentParser(prog="python -m ci.fit_probabilities", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/radar"), help="radar files")
    parser.add_argument("--every", type=int, default=20, help="minutes between starts")
    parser.add_argument("--starts", type=int, default=16, help="starts of a radar at most")
    options = parser.parse_args()
    of_radar: dict[str, list[Event]] = defaultdict(list)
    for event in events.loaded(options.data, events.CACHE, lambda s: s.radar in RADARS):
        of_radar[event.radar].append(event)
    drawn: list[Sample] = []
    for loaded in of_radar.values():
        drawn += samples(loaded, options.every, options.starts)
    for threshold, *pairs in zip(*astuple(fit(drawn)), strict=True):
        print(f"    {(threshold, *sum(pairs, ()))!r},")
    left_out = {r: asdict(fit([s for s in drawn if s.source != r])) for r in sorted(of_radar)}
    LEFT_OUT.write_text(json.dumps(left_out, indent=1) + "\n")


if __name__ == "__main__":
    main()
