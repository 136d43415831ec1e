"""``nowcast cells``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from daskdl.errors import SettingsError
from nowcast.commands.talk import progress_bar, say


def cells(
    rain: Annotated[
        Path, typer.Argument(help="Rain store or forecast that nowcast wrote, zarr or netCDF.")
    ],
    out: Annotated[Path, typer.Option(help="Cells to write: .geojson, .csv or .parquet")],
    threshold: Annotated[float, typer.Option(help="mm/h from which on rain is of a cell.")] = 1.0,
    saddle: Annotated[
        float,
        typer.Option(help="Two peaks are two cells if rain between falls below this share."),
    ] = 0.8,
    smooth_km: Annotated[float, typer.Option(help="Width of the smoothing before.")] = 1.5,
    least_km2: Annotated[float, typer.Option(help="Smallest area of a cell.")] = 10.0,
    place: Annotated[
        list[str] | None,
        typer.Option(help="NAME=LAT,LON: print when cells of the last frame reach it."),
    ] = None,
) -> None:
    """Outline rain cells and follow them in time, with size, rain, speed, trend and parents.

    With --place, standard output has a line of CSV for each cell that reaches a place within an
    hour, if it moves on as it is.
    """
    from nowcast.cells.ahead import arrivals, described
    from nowcast.cells.track import track_cells
    from nowcast.cells.write import check_out, write_cells
    from nowcast.forecasters.file import open_fields

    check_out(out)
    places = dict(map(_named_place, place or ()))
    with open_fields(rain) as dataset, progress_bar("cells") as advance:
        rows = track_cells(
            dataset, threshold=threshold, saddle=saddle, smooth_km=smooth_km,
            least_km2=least_km2, progress=advance,
        )  # fmt: skip
    write_cells(rows, out)
    say(f"{len(rows)} cells of {len({cell.track for cell in rows})} tracks written to {out}")
    if places:
        typer.echo("place,track,cell,begins,ends")
        for arrival in arrivals(rows, places):
            typer.echo(described(arrival))


def _named_place(text: str) -> tuple[str, tuple[float, float]]:
    """Return name, latitude and longitude of NAME=LAT,LON."""
    from nowcast.radar.header import Site

    name, equals, where = text.rpartition("=")
    if not (name and equals):
        raise SettingsError(f"--place: expected NAME=LAT,LON such as Uccle=50.8,4.36, found {text}")
    site = Site.parse(where)
    return name, (site.latitude, site.longitude)
