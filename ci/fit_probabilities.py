"""Fit the rank margins of `sprog` to real events: ``python -m ci.fit_probabilities``.

Prints the ROWS of nowcast.lagrangian.exceedance; writes margins without each radar for the bench.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple
from pathlib import Path

import numpy as np

from ci.bench.skill import events
from ci.bench.skill.events import Event
from daskdl.errors import DataError
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
    cache = Path(tempfile.gettempdir()) / "nowcast-skill"
    cache.mkdir(parents=True, exist_ok=True)
    of_radar: dict[str, list[Event]] = defaultdict(list)
    for source in events.available(options.data, cache):
        if source.radar not in RADARS:
            continue
        try:
            of_radar[source.radar].append(events.load(source, options.data, cache))
        except DataError as error:
            print(f"{source.name}: left out: {error}", file=sys.stderr)
    drawn: list[Sample] = []
    for loaded in of_radar.values():
        drawn += samples(loaded, options.every, options.starts)
    for threshold, *pairs in zip(*astuple(fit(drawn)), strict=True):
        print(f"    {(threshold, *sum(pairs, ()))!r},")
    left_out = {r: asdict(fit([s for s in drawn if s.source != r])) for r in sorted(of_radar)}
    LEFT_OUT.write_text(json.dumps(left_out, indent=1) + "\n")


if __name__ == "__main__":
    main()
