"""``nowcast accumulate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from daskdl.errors import SettingsError
from nowcast.commands.arguments import numbers
from nowcast.commands.talk import progress_bar, say


def accumulate(
    rain: Annotated[
        Path, typer.Argument(help="Rain store or forecast that nowcast wrote, zarr or netCDF.")
    ],
    out: Annotated[Path, typer.Option(help="Sums to write: zarr, or netCDF if it ends in .nc")],
    over: Annotated[str, typer.Option(help="Lengths of windows, e.g. 1h,24h.")] = "1h",
    every: Annotated[
        str | None,
        typer.Option(help="From the end of a window to that of the next; at most 1h by default."),
    ] = None,
    amounts: Annotated[
        str, typer.Option(help="mm whose probability is told, of forecasts with members: 5,10,20")
    ] = "",
    areas: Annotated[
        Path | None,
        typer.Option(help="GeoJSON with polygons and points: their sums, and a CSV beside --out."),
    ] = None,
    bridge: Annotated[
        str, typer.Option(help="Frames farther apart have a gap between them.")
    ] = "30min",
    observed: Annotated[
        float, typer.Option(help="Least share of a window that is observed, else it is missing.")
    ] = 0.9,
) -> None:
    """Sum up rain over windows of time; between frames it moves along its motion.

    Of a forecast with members you get the probability of amounts, from each member's own sum.
    """
    from nowcast.forecasters.file import open_fields
    from nowcast.sums.accumulate import accumulate_to
    from nowcast.sums.rules import Rules

    reached = numbers("--amounts", amounts) if amounts else ()
    rules = Rules.of(over, every, reached, bridge, observed)
    _check_out(out, rain)
    with open_fields(rain) as dataset, progress_bar("accumulate") as advance:
        ends = accumulate_to(out, dataset, rules, areas, advance)
    table = f", of areas to {out.with_suffix('.csv')}" if areas else ""
    say(f"sums at {ends} times written to {out}{table}")


def _check_out(out: Path, rain: Path) -> None:
    """Refuse to replace what is no sum: the rain itself, or a folder of something else."""
    folder = out.is_dir() and any(out.iterdir()) and not (out / "rain_sum").is_dir()
    if folder or out.resolve() == rain.resolve():
        raise SettingsError(
            f"--out: expected a new name or that of older sums, found something else at {out}; "
            "choose another name, or remove it"
        )
