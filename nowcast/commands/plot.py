"""``nowcast plot``."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from daskdl.errors import DataError, SettingsError
from nowcast.commands.talk import say
from nowcast.rain.utc import utc_text

if TYPE_CHECKING:
    import xarray as xr


def run(forecast: Path, out: Path, *, observed: Path | None) -> None:
    """Draw a forecast, beside what was observed if that is there."""
    from nowcast.forecasters.file import open_forecast
    from nowcast.plot import animate_forecast, plot_forecast
    from nowcast.rain.store import open_rain

    suffix = out.suffix.lower()
    if suffix not in (".png", ".gif") or out.is_dir():
        raise SettingsError(
            f"--out: expected the name of a file that ends in .png or .gif, found {out}"
        )
    with ExitStack() as stack:
        made = stack.enter_context(open_forecast(forecast))
        seen = None
        if observed is not None:
            rain = stack.enter_context(open_rain(observed))
            seen = _at_times_of(made, forecast, rain, observed)
        draw = animate_forecast if suffix == ".gif" else plot_forecast
        draw(made, out, observed=seen)
    say(f"picture written to {out}")


def _at_times_of(
    made: xr.Dataset, forecast: Path, rain: xr.Dataset, observed: Path
) -> xr.DataArray:
    """Return the frames of a rain store at a forecast's times, NaN at those that it lacks."""
    from nowcast.rain.grid import Grid

    grid, other = (
        Grid.from_dataset(made, where=str(forecast)),
        Grid.from_dataset(rain, where=str(observed)),
    )
    if not grid.matches(other):
        raise DataError(f"{observed}: expected the forecast's grid, {grid}, found {other}")
    wanted = made["time"].values
    if not np.isin(wanted, rain["time"].values).any():
        raise DataError(
            f"{observed}: expected frames from {utc_text(wanted[0])} to {utc_text(wanted[-1])}, "
            "the forecast's times, found none"
        )
    return rain["rain_rate"].reindex(time=wanted)
