"""``nowcast predict``."""

from __future__ import annotations

from pathlib import Path

from nowcast.commands.arguments import lead_minutes
from nowcast.commands.talk import say
from nowcast.rain.utc import utc_text


def run(model: Path, rain: Path, out: Path, *, at: str, lead: str | None) -> None:
    """Write a forecast; see :func:`nowcast.forecasters.predict.predict`."""
    from nowcast.forecasters.file import check_replaceable
    from nowcast.forecasters.predict import predict
    from nowcast.model.model import NowcastModel
    from nowcast.rain.store import open_rain, write_dataset

    minutes = lead_minutes(lead)
    check_replaceable(out)
    with open_rain(rain) as store:
        forecast = predict(NowcastModel.load(model), store, at, minutes)
        write_dataset(forecast, out)
    reference = utc_text(forecast["forecast_reference_time"].values)
    frames = forecast.sizes["lead_time"]
    say(f"{frames} frames from {reference} UTC written to {out}")
