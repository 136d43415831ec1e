"""Compare forecasters with pysteps' on real events: ``python -m ci.bench.skill``."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from ci.bench.skill import events
from ci.bench.skill.cases import Case, cases, names
from ci.bench.skill.fitted import fill_in
from ci.bench.skill.results import Results


def main() -> None:
    """Print a table for each event, one for all, and one by source."""
    parser = argparse.ArgumentParser(prog="python -m ci.bench.skill", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/radar"), help="radar files")
    parser.add_argument(
        "--cache",
        type=Path,
        default=events.CACHE,
        help="folder for the rain stores and for pysteps' forecasts",
    )
    parser.add_argument("--methods", help="names with commas between; by default all")
    parser.add_argument("--events", help="beginnings of names with commas between; by default all")
    parser.add_argument("--starts", type=int, help="starts of an event at most; by default all")
    parser.add_argument("--leads", default="30,60", help="lead times in minutes, with commas")
    parser.add_argument("--every", type=int, default=30, help="minutes between starts")
    options = parser.parse_args()
    chosen = options.methods.split(",") if options.methods else names()
    wanted = tuple(options.events.split(",")) if options.events else ("",)
    leads = sorted(int(lead) for lead in options.leads.split(","))
    made: list[Case] = []
    for event in events.loaded(options.data, options.cache, lambda s: s.name.startswith(wanted)):
        began = time.perf_counter()
        of_event = list(
            cases(
                event, chosen, leads, every=options.every, most=options.starts, cache=options.cache
            )
        )
        made += of_event
        print(
            f"{event.name}: {len(of_event)} starts that reach common valid times, "
            f"{event.spacing:g} km, {event.rain.shape[1]} x {event.rain.shape[2]}, "
            f"{time.perf_counter() - began:.0f} s",
            file=sys.stderr,
            flush=True,
        )
    if not made:
        parser.error(f"no event with rain found in {options.data} (--data, --events, --every)")
    fill_in(made)
    results = Results(made, chosen, leads)
    print("\n".join([*results.lines(), "", *results.by_source()]))


if __name__ == "__main__":
    main()
