"""Fit the rank margins of `sprog` to real events: ``python -m ci.fit_probabilities``.

Prints the table that stands in nowcast/lagrangian/margins.py, fitted to all radars, and writes
those fitted without each radar to ci/bench/skill/left_out.json, by which ci.bench.skill judges.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np

from ci.bench.skill import events
from ci.bench.skill.events import Event
from daskdl.errors import DataError
from nowcast.model.calibration import LEADS, N_IN, Sample, draw, fit

LEFT_OUT = Path(__file__).parent / "bench" / "skill" / "left_out.json"


def samples(event: Event, every: int) -> Iterator[Sample]:
    """Draw pixels of all starts of an event, the same ones each time."""
    rng = np.random.default_rng(0)
    leads = [lead // event.step for lead in LEADS if lead % event.step == 0]
    for start in event.starts(N_IN, [leads[-1] * event.step], every):
        past = event.rain[start - N_IN + 1 : start + 1]
        yield from draw(
            event.radar, past, event.rain[start + 1 :], leads, rng, spacing_km=event.spacing,
            step_minutes=event.step,
        )  # fmt: skip


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
    radars = sorted({s.source for s in drawn})
    left_out = {r: asdict(fit([s for s in drawn if s.source != r])) for r in radars}
    LEFT_OUT.write_text(json.dumps(left_out, indent=1) + "\n")


if __name__ == "__main__":
    main()
