"""``nowcast plot``."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from daskdl.errors import DataError, SettingsError
from nowcast.commands.talk import say

if TYPE_CHECKING:
    import xarray as xr

    from nowcast.plot.rain import CellShape


def plot(
    forecast: Annotated[
        list[Path],
        typer.Argument(
            help="Forecasts that 'nowcast predict' wrote, a row each; or scans for --before-after."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Picture: .png, or .gif for an animation.")],
    observed: Annotated[
        Path | None,
        typer.Option(
            help="Rain store: its last frame comes first, observed rain is next to the forecast."
        ),
    ] = None,
    threshold: Annotated[
        list[float] | None,
        typer.Option(
            help="Show the probability of this rain rate too, mm h-1; may be repeated. By default "
            "1, of a forecast that has it."
        ),
    ] = None,
    members: Annotated[int, typer.Option(min=0, help="Show so many members too.")] = 2,
    zoom: Annotated[
        float | None,
        typer.Option(help="Show the square of so many km with the most rain, not the whole grid."),
    ] = None,
    cells: Annotated[
        bool,
        typer.Option(
            "--cells", help="Outline rain cells, with arrows to where they are in 15 min."
        ),
    ] = False,
    before_after: Annotated[
        bool, typer.Option("--before-after", help="Show the cleaning of a polar scan.")
    ] = False,
    clean: Annotated[
        str, typer.Option(help="With --before-after: its steps, as of 'nowcast ingest'.")
    ] = "default",
    freezing: Annotated[
        str | None, typer.Option(help="With --before-after: as of 'nowcast ingest'.")
    ] = None,
    at: Annotated[
        str | None, typer.Option(help="With --before-after: time (UTC) of one of several scans.")
    ] = None,
) -> None:
    """Show forecasts next to observed rain, or the cleaning of a scan (--before-after)."""
    from nowcast.forecasters.file import open_forecast
    from nowcast.plot import animate_forecast, plot_forecast
    from nowcast.plot.panels import OBSERVED
    from nowcast.rain.store import opened_rain

    suffix = out.suffix.lower()
    if suffix not in (".png", ".gif") or out.is_dir():
        raise SettingsError(
            f"--out: expected the name of a file that ends in .png or .gif, found {out}"
        )
    if before_after:
        _plot_cleaning(forecast, out, clean, freezing, zoom, at)
        return
    if cells and suffix == ".gif":
        raise SettingsError(f"--cells: expected a picture that ends in .png, found {out}")
    with ExitStack() as stack:
        opened = {path: stack.enter_context(open_forecast(path)) for path in forecast}
        first, *others = opened
        for other in others:
            _check_start(first, opened[first], other, opened[other])
        seen = before = None
        if observed is not None:
            rain = stack.enter_context(opened_rain(observed))
            before, seen = _around(opened[first], first, rain, observed)
        rows = dict(zip(_names(opened), opened.values(), strict=True))
        options: dict[str, Any] = {
            "observed": seen, "before": before, "thresholds": threshold or None,
            "members": members, "zoom_km": zoom,
        }  # fmt: skip
        if suffix == ".gif":
            animate_forecast(rows, out, **options)
        else:
            shapes = {name: _shapes(one) for name, one in rows.items()} if cells else {}
            if cells and observed is not None:
                shapes[OBSERVED] = _shapes(_near(opened[first], rain))
            plot_forecast(rows, out, **options, cells=shapes)
    say(f"picture written to {out}")


def _plot_cleaning(
    paths: list[Path],
    out: Path,
    steps: str,
    freezing: str | None,
    zoom: float | None,
    at: str | None,
) -> None:
    """Draw the lowest sweep of a scan before and after its cleaning."""
    from nowcast.ingest.rain_map import clean_sweeps, placed
    from nowcast.ingest.scan import group_scans
    from nowcast.ingest.settings import IngestSettings
    from nowcast.plot.cleaning import plot_cleaning
    from nowcast.radar import reader
    from nowcast.rain.texts import parse_utc, utc_text

    settings = IngestSettings.of(clean=steps, freezing=freezing)
    headers = [reader.read_header(path) for path in paths]
    header = headers[0]
    if not header.format.polar or out.suffix.lower() != ".png":
        raise SettingsError(
            f"--before-after: expected a polar scan and the name of a .png, found {header.format} "
            f"and {out}; give volumes, or moments of one, of one time"
        )
    scans, _ = group_scans(headers)
    times = [scan.time for scan in scans]
    chosen = [scan for scan in scans if at is None or scan.time == parse_utc("--at", at)]
    if len(chosen) != 1:
        raise SettingsError(
            f"--at: expected the time of one of {len(scans)} scans from {utc_text(min(times))} to "
            f"{utc_text(max(times))}, found {at or 'no time'}; name one, or give one time's files"
        )
    paths = [Path(path) for path in chosen[0].paths]
    sweeps = reader.read_sweeps(paths, header.format)
    if freezing is not None:
        sweeps = placed(sweeps, settings, header.site, str(paths[0]))
    (cleaned,) = clean_sweeps(sweeps, settings, header.format)
    reach = None if zoom is None else 500 * zoom
    plot_cleaning(sweeps[0], cleaned, out, header.station, reach)
    say(f"picture written to {out}")


def _near(forecast: xr.Dataset, rain: xr.Dataset) -> xr.Dataset:
    """Return the frames of a rain store from half an hour before a forecast to its end."""
    first = forecast["forecast_reference_time"].values - np.timedelta64(30, "m")
    return rain.sel(time=slice(first, forecast["time"].values[-1]))


def _shapes(rain: xr.Dataset) -> list[CellShape]:
    """Return the cells of all frames on the grid, with their places in 15 minutes."""
    from nowcast.cells.motion import track_ahead
    from nowcast.cells.track import track_cells
    from nowcast.plot.rain import CellShape
    from nowcast.rain.grid import Grid

    to_grid = Grid.from_dataset(rain).from_degrees()

    def km(degrees: Any) -> Any:
        return np.column_stack(to_grid(*np.asarray(degrees).T)) / 1000

    shapes = []
    for cell in track_cells(rain):
        points = [(cell.longitude, cell.latitude)]
        points += [(point.longitude, point.latitude) for point in track_ahead(cell)[:1]]
        time = np.datetime64(cell.time.removesuffix("Z"), "s")
        way = km(points) if len(points) > 1 else None
        shapes.append(CellShape(time, tuple(km(ring) for ring in cell.outline), way))
    return shapes


def _names(opened: dict[Path, xr.Dataset]) -> list[str]:
    """Return the rows' names: each forecast's method, and its file if several share the method."""
    methods = []
    for one in opened.values():
        match = re.match(r"(?:nowcast, method )?(.+?), from ", str(one.attrs.get("source", "")))
        methods.append(match[1] if match else "forecast")
    return [
        method if methods.count(method) == 1 else f"{method} ({path})"
        for method, path in zip(methods, opened, strict=True)
    ]


def _check_start(first: Path, one: xr.Dataset, path: Path, other: xr.Dataset) -> None:
    """Raise a DataError unless two forecasts start at the same time."""
    from nowcast.rain.texts import utc_text

    start, start_of_other = (d["forecast_reference_time"].values for d in (one, other))
    if start != start_of_other:
        raise DataError(
            f"{path}: expected a forecast from {utc_text(start)}, as {first} is, found one from "
            f"{utc_text(start_of_other)}; predict both with one --at"
        )


def _around(
    made: xr.Dataset, forecast: Path, rain: xr.Dataset, observed: Path
) -> tuple[xr.DataArray | None, xr.DataArray | None]:
    """Return the last frame before a forecast, and the frames at its times, NaN where missing.

    Either is None if the rain store has none, as for a forecast that was made just now.
    """
    from nowcast.rain.grid import Grid
    from nowcast.rain.texts import utc_text

    grid, other = (
        Grid.from_dataset(made, where=str(forecast)),
        Grid.from_dataset(rain, where=str(observed)),
    )
    if not grid.matches(other):
        raise DataError(
            f"{observed}: expected the forecast's grid, {grid}, found {other}; give the store "
            "that was forecast from, or one ingested with its grid"
        )
    wanted = made["time"].values
    there = rain["time"].values
    start = made["forecast_reference_time"].values
    before = rain["rain_rate"].sel(time=[start]) if start in there else None
    if not np.isin(wanted, there).any() and before is None:
        raise DataError(
            f"{observed}: expected frames from {utc_text(wanted[0])} to {utc_text(wanted[-1])}, "
            "the forecast's times, found none; ingest the scans of "
            "these times first, or leave --observed out"
        )
    seen = rain["rain_rate"].reindex(time=wanted) if np.isin(wanted, there).any() else None
    return before, seen
