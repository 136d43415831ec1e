"""Compare forecasters with pysteps' on real events: ``python -m ci.bench.skill``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ci.bench.skill import events, methods, results, table


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

    def say(sentence: str) -> None:
        print(sentence, file=sys.stderr, flush=True)

    chosen = options.methods.split(",") if options.methods else methods.names()
    wanted = tuple(options.events.split(",")) if options.events else ("",)
    loaded = list(events.loaded(options.data, options.cache, lambda s: s.name.startswith(wanted)))
    skill = results.compare(
        loaded, chosen, [int(lead) for lead in options.leads.split(",")],
        every=options.every, most=options.starts, cache=options.cache, say=say,
    )  # fmt: skip
    if not skill.radars:
        parser.error(f"no event with rain found in {options.data} (--data, --events, --every)")
    print("\n".join([*table.lines(skill), "", *table.by_source(skill)]))


if __name__ == "__main__":
    main()
