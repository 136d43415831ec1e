"""Commands that make more of rain: accumulate, adjust, cells."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from daskdl.errors import SettingsError
from nowcast.commands.arguments import RainOrForecast, numbers
from nowcast.commands.talk import progress_bar, say

if TYPE_CHECKING:
    import xarray as xr


def accumulate(
    rain: RainOrForecast,
    out: Annotated[Path, typer.Option(help="Sums to write: zarr, or netCDF if it ends in .nc")],
    over: Annotated[str, typer.Option(help="Lengths of windows, e.g. 1h,24h.")] = "1h",
    every: Annotated[
        str | None,
        typer.Option(help="From the end of a window to the next end; at most 1h by default."),
    ] = None,
    amounts: Annotated[
        str, typer.Option(help="mm to give probabilities of, for forecasts with members: 5,10,20")
    ] = "",
    areas: Annotated[
        Path | None,
        typer.Option(help="GeoJSON with polygons and points: their sums, and a CSV next to --out."),
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
    _check_out(out, "rain_sum", rain)
    with open_fields(rain) as dataset, progress_bar("accumulate") as advance:
        count = accumulate_to(out, dataset, rules, areas, advance)
    table = f", of areas to {out.with_suffix('.csv')}" if areas else ""
    say(f"sums at {count} times written to {out}{table}")


def _check_out(out: Path, variable: str, *sources: Path) -> None:
    """Refuse to replace a source, or a folder without the sums' variable."""
    folder = out.is_dir() and any(out.iterdir()) and not (out / variable).is_dir()
    if folder or out.resolve() in [source.resolve() for source in sources]:
        raise SettingsError(
            f"--out: expected a new name or older sums, found something else at {out}; "
            "choose another name, or remove it"
        )


def adjust(
    sums: Annotated[Path, typer.Argument(help="Sums that 'nowcast accumulate' wrote.")],
    gauges: Annotated[
        Path,
        typer.Argument(help="CSV (station,latitude,longitude,time,mm) or CF netCDF of gauges."),
    ],
    out: Annotated[Path, typer.Option(help="Adjusted sums: zarr, or netCDF if it ends in .nc")],
    method: Annotated[
        str, typer.Option(help="'mean' field bias of each time, or by 'range' too.")
    ] = "mean",
    window: Annotated[float, typer.Option(help="Hours over which the gauges' amounts are.")] = 1.0,
) -> None:
    """Adjust radar sums to rain gauges, and print how well that does where a gauge is left out.

    Standard output has a line of CSV for the radar as it is and for each method: all rain over that
    of the gauges, errors in mm.
    """
    from nowcast.rain.store import write_dataset
    from nowcast.sums.adjust import adjusted, left_out, methods_of, pairs_of
    from nowcast.sums.gauges import Gauges

    _check_out(out, "adjustment", sums, gauges)
    read = Gauges.read(gauges)
    with _opened(sums) as dataset:
        pairs = pairs_of(dataset, read, window)
        result = adjusted(dataset, pairs, method, window)
        write_dataset(result, out)
        methods = methods_of(dataset)
    typer.echo("method,pairs,bias,rmse_mm,mae_mm")
    for score in left_out(pairs, methods):
        typer.echo(
            f"{score.method},{score.pairs},{score.bias:.3f},{score.rmse:.3f},{score.mae:.3f}"
        )
    say(f"sums adjusted to {len(read.names)} gauges by {method} written to {out}")


def _opened(path: Path) -> xr.Dataset:
    """Open sums, in netCDF or zarr."""
    import xarray as xr

    from nowcast.rain.store import expecting

    with expecting(path, "sums that nowcast accumulate wrote", "make them by nowcast accumulate"):
        return xr.open_zarr(path) if path.is_dir() else xr.open_dataset(path, engine="h5netcdf")


def cells(
    rain: RainOrForecast,
    out: Annotated[Path, typer.Option(help="Cells to write: .geojson, .csv or .parquet")],
    threshold: Annotated[float, typer.Option(help="mm/h from which on rain is of a cell.")] = 1.0,
    saddle: Annotated[
        float, typer.Option(help="Two peaks are two cells if rain between falls below this share.")
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
    from nowcast.cells.motion import arrivals, described
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
