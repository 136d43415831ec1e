"""``nowcast predict``."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from daskdl.errors import DataError
from nowcast.commands.arguments import lead_minutes, numbers
from nowcast.commands.talk import progress_bar, say
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
    """Write a forecast; see :func:`nowcast.forecasters.predict.predict`.

    ``rain`` is a rain store, or a folder of radar scans, which are taken into a store that is
    forgotten afterwards.
    """
    from nowcast.forecasters import forecaster
    from nowcast.forecasters.file import check_replaceable
    from nowcast.forecasters.predict import predict
    from nowcast.rain.store import opened_rain, write_dataset

    minutes = lead_minutes(lead)
    rates = numbers("--thresholds", thresholds) if thresholds else ()
    chosen = forecaster(method, model)
    check_replaceable(out)
    with ExitStack() as stack:
        if _is_folder_of_scans(rain):
            folder = Path(stack.enter_context(TemporaryDirectory()))
            store = stack.enter_context(opened_rain(_ingested(rain, folder / "rain.zarr")))
        else:
            store = stack.enter_context(opened_rain(rain))
        forecast = predict(
            chosen, store, at, minutes, method=f"nowcast, method {method}", thresholds=rates,
            members=members, seed=seed,
        )  # fmt: skip
        write_dataset(forecast, out)
    reference = utc_text(forecast["forecast_reference_time"].values)
    frames = forecast.sizes["lead_time"]
    say(f"{frames} frames from {reference} UTC written to {out}")


def _is_folder_of_scans(path: Path) -> bool:
    """Whether a path is a folder with files that is no zarr store."""
    return path.is_dir() and not (path / "zarr.json").exists() and any(path.iterdir())


def _ingested(scans: Path, store: Path) -> Path:
    """Take a folder of scans into a store with the settings that ``nowcast ingest`` has."""
    from nowcast.ingest.ingest import ingest

    try:
        with progress_bar("read the scans") as advance:
            report = ingest([scans], store, progress=advance)
    except DataError as error:
        raise DataError(
            f"{scans}: expected a rain store (zarr) as nowcast ingest writes it, or a folder of "
            f"radar scans, found something else ({error})"
        ) from error
    say(f"{report.written} scans read, {len(report.failed)} files not read")
    return store
