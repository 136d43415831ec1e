"""``nowcast cells``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nowcast.commands.talk import progress_bar, say


def cells(
    rain: Annotated[
        Path, typer.Argument(help="Rain store or forecast that nowcast wrote, zarr or netCDF.")
    ],
    out: Annotated[Path, typer.Option(help="Cells to write: .geojson or .csv")],
    threshold: Annotated[float, typer.Option(help="mm/h from which on rain is of a cell.")] = 1.0,
    saddle: Annotated[
        float,
        typer.Option(help="Two peaks are two cells if rain between falls below this share."),
    ] = 0.5,
    smooth_km: Annotated[float, typer.Option(help="Width of the smoothing before.")] = 1.5,
    least_km2: Annotated[float, typer.Option(help="Smallest area of a cell.")] = 10.0,
) -> None:
    """Outline rain cells and follow them in time, with their size, rain, speed and parents."""
    from nowcast.cells.track import track_cells
    from nowcast.cells.write import check_out, write_cells
    from nowcast.forecasters.file import open_fields

    check_out(out)
    with open_fields(rain) as dataset, progress_bar("cells") as advance:
        rows = track_cells(
            dataset, threshold=threshold, saddle=saddle, smooth_km=smooth_km,
            least_km2=least_km2, progress=advance,
        )  # fmt: skip
    write_cells(rows, out)
    say(f"{len(rows)} cells of {len({cell.track for cell in rows})} tracks written to {out}")
