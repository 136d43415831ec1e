"""``nowcast predict``."""

from __future__ import annotations

from pathlib import Path

from nowcast.commands.arguments import lead_minutes
from nowcast.commands.talk import say


def run(model: Path, rain: Path, out: Path, *, at: str, lead: str | None) -> None:
    """Write a forecast; see :func:`nowcast.predict.predict`."""
    from nowcast.model import NowcastModel
    from nowcast.predict import predict
    from nowcast.store import open_rain, write_dataset

    minutes = lead_minutes(lead)
    forecast = predict(NowcastModel.load(model), open_rain(rain), at, minutes)
    write_dataset(forecast, out)
    reference = forecast["forecast_reference_time"].values.astype("datetime64[s]")
    frames = forecast.sizes["lead_time"]
    say(f"{frames} frames from {reference} UTC written to {out}")
