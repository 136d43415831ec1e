"""``nowcast adjust``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from daskdl.errors import DataError, SettingsError
from nowcast.commands.talk import say

if TYPE_CHECKING:
    import xarray as xr


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

    if out.resolve() in (sums.resolve(), gauges.resolve()) or (
        out.is_dir() and any(out.iterdir()) and not (out / "adjustment").is_dir()
    ):
        raise SettingsError(f"--out: expected a new name, found {out}; choose another")
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

    try:
        return xr.open_zarr(path) if path.is_dir() else xr.open_dataset(path, engine="h5netcdf")
    except (OSError, ValueError, KeyError) as error:
        raise DataError(
            f"{path}: expected sums that nowcast accumulate wrote, found {type(error).__name__}"
        ) from error
