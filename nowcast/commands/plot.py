"""``nowcast plot``."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from daskdl.errors import DataError, SettingsError
from nowcast.commands.talk import say


def run(forecast: Path, out: Path, *, observed: Path | None) -> None:
    """Draw a forecast, beside what was observed if that is there."""
    from nowcast.forecast import open_forecast
    from nowcast.plot import animate_forecast, plot_forecast
    from nowcast.store import open_rain

    if out.suffix not in (".png", ".gif"):
        raise SettingsError(f"--out: expected a name that ends in .png or .gif, found {out}")
    made = open_forecast(forecast)
    seen = None
    if observed is not None:
        rain = open_rain(observed)
        wanted = made["time"].values
        there = np.isin(wanted, rain["time"].values)
        if not there.any():
            raise DataError(
                f"{observed}: expected frames from {wanted[0].astype('datetime64[s]')} to "
                f"{wanted[-1].astype('datetime64[s]')}, the forecast's times, found none"
            )
        seen = rain["rain_rate"].reindex(time=wanted)
    draw = animate_forecast if out.suffix == ".gif" else plot_forecast
    draw(made, out, observed=seen)
    say(f"picture written to {out}")
