"""``nowcast predict``."""

from __future__ import annotations

from pathlib import Path

from nowcast.commands.arguments import lead_minutes, numbers
from nowcast.commands.talk import say
from nowcast.rain.utc import utc_text


def run(
    rain: Path,
    out: Path,
    *,
    method: str,
    model: Path | None,
    at: str,
    lead: str | None,
    thresholds: str,
    members: int,
    seed: int,
) -> None:
    """Write a forecast; see :func:`nowcast.forecasters.predict.predict`."""
    from nowcast.forecasters import forecaster
    from nowcast.forecasters.file import check_replaceable
    from nowcast.forecasters.predict import predict
    from nowcast.rain.store import opened_rain, write_dataset

    minutes = lead_minutes(lead)
    rates = numbers("--thresholds", thresholds) if thresholds else ()
    chosen = forecaster(method, model)
    check_replaceable(out)
    with opened_rain(rain) as store:
        forecast = predict(
            chosen, store, at, minutes, method=f"nowcast, method {method}", thresholds=rates,
            members=members, seed=seed,
        )  # fmt: skip
        write_dataset(forecast, out)
    reference = utc_text(forecast["forecast_reference_time"].values)
    frames = forecast.sizes["lead_time"]
    say(f"{frames} frames from {reference} UTC written to {out}")
