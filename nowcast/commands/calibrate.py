"""``nowcast calibrate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nowcast.commands.arguments import lead_minutes
from nowcast.commands.talk import progress_bar, say


def calibrate(
    rain: Annotated[
        list[Path], typer.Argument(help="Rain stores that 'nowcast ingest' wrote; one or more.")
    ],
    out: Annotated[Path, typer.Option(help="File to write, JSON of a few kilobytes.")],
    starts: Annotated[
        int, typer.Option(min=1, help="Forecasts to learn from, at times with rain.")
    ] = 200,
    lead: Annotated[
        str, typer.Option(help="Longest lead time that is fitted, e.g. 60min.")
    ] = "60min",
) -> None:
    """Fit the probabilities of sprog to one's own archive.

    Those that ship were fitted to events of five radars. Few data change them little: what the
    archive does not tell stays as it is. Give the file to predict, verify and train as
    --calibration.
    """
    from nowcast.model.calibration import calibrate, write_table

    minutes = lead_minutes(lead)
    assert minutes is not None
    with progress_bar("calibrate") as advance:
        table, used = calibrate(rain, starts=starts, lead_minutes=minutes, progress=advance)
    write_table(table, out, {"fitted_on": [str(path) for path in rain], "starts": used})
    say(f"probabilities fitted to {used} forecasts written to {out}")
