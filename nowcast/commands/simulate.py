"""``nowcast simulate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nowcast.commands.talk import progress_bar, say


def simulate(
    out: Annotated[Path, typer.Option(help="Rain store to write, a new zarr folder.")],
    days: Annotated[int, typer.Option(min=1, help="Days, each of one kind of weather.")] = 1,
    hours: Annotated[float, typer.Option(help="Of each day that are written.")] = 24.0,
    step: Annotated[int, typer.Option(min=1, help="Minutes between frames.")] = 10,
    size: Annotated[int, typer.Option(min=16, help="Cells along each side.")] = 128,
    spacing: Annotated[float, typer.Option(help="Kilometres between cells.")] = 2.0,
    seed: Annotated[int, typer.Option(min=0, help="Of the first day's weather.")] = 0,
    organised: Annotated[
        bool, typer.Option("--organised", help="Storms go through stages: cores, stratiform rain.")
    ] = False,
    radars: Annotated[int, typer.Option(min=1, help="That look in turn, each its own way.")] = 1,
) -> None:
    """Write a rain store of simulated weather, to try things out and to learn from.

    Storms are born, move, grow and fade; each day is fronts, mixed weather, showers or squalls,
    seen by a radar with errors and a limited range. Days have the seeds from --seed on.
    """
    from nowcast.simulate.archive import Days, simulate_archive

    chosen = Days(days, hours, step, size, 1000 * spacing, seed, organised, radars)
    with progress_bar("simulate") as advance:
        simulate_archive(out, chosen, advance)
    say(f"{days * chosen.per_day} frames of simulated rain written to {out}")
