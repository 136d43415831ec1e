"""``nowcast predict``."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from daskdl.errors import DataError, SettingsError
from nowcast.commands.arguments import (
    Calibration,
    MaybeCluster,
    Members,
    Model,
    Seed,
    Workers,
    connected,
    lead_minutes,
    numbers,
)
from nowcast.commands.talk import progress_bar, say

if TYPE_CHECKING:
    from nowcast.forecasters import Forecaster


def predict(
    rain: Annotated[
        Path, typer.Argument(help="Rain store that 'nowcast ingest' wrote, or a folder of scans.")
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="Forecast to write: netCDF (.nc), Cloud-optimised GeoTIFF (.tif), GRIB2 (.grib2), "
            "pictures with world files (.gif), cells (.geojson) or zarr."
        ),
    ],
    method: Annotated[
        str,
        typer.Option(
            help="persistence, extrapolation, sprog, realistic, steps, pysteps:NAME "
            "(extrapolation, sprog, anvil, steps, linda), model, or auto: a model that proved "
            "better than sprog, or sprog."
        ),
    ] = "auto",
    model: Model = None,
    at: Annotated[
        str, typer.Option(help="Time of the last frame to read (UTC), or 'latest'.")
    ] = "latest",
    lead: Annotated[str | None, typer.Option(help="How far ahead, e.g. 60min.")] = None,
    thresholds: Annotated[
        str, typer.Option(help="Rain rates whose exceedance is forecast, mm h-1; '' for none.")
    ] = "0.1,0.5,1,2,5,10,20",
    members: Members = 0,
    seed: Seed = 0,
    calibration: Calibration = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--from", help="Forecast from each frame from this time on; --out is a folder."
        ),
    ] = None,
    stop: Annotated[str | None, typer.Option("--to", help="Last time to forecast from.")] = None,
    every: Annotated[
        int, typer.Option(min=1, help="With --from: frames from one start to the next.")
    ] = 1,
    cluster: MaybeCluster = None,
    workers: Workers = None,
) -> None:
    """Forecast rain from the frames of a store, or of a folder of scans, up to a time.

    Needs no trained model. With --from or --to there is a netCDF file for each start, made on a
    cluster if --cluster names one; the same command goes on where an interrupted one stopped.
    """
    from nowcast.forecasters import forecaster
    from nowcast.forecasters.file import check_replaceable, open_forecast
    from nowcast.forecasters.predict import predict_to
    from nowcast.forecasters.registry import used
    from nowcast.lagrangian.exceedance import SHIPPED
    from nowcast.live.products import PRODUCTS
    from nowcast.model.calibration import read_table
    from nowcast.rain.identity import is_simulated
    from nowcast.rain.store import is_netcdf, opened_rain
    from nowcast.rain.texts import utc_text

    minutes = lead_minutes(lead)
    rates = numbers("--thresholds", thresholds) if thresholds else ()
    table = SHIPPED if calibration is None else read_table(calibration)
    forecaster(method, model, table)  # refuse a wrong method before scans are read
    if start is not None or stop is not None:
        chosen = forecaster(method, model, table, say)
        _predict_each(
            rain, out, chosen, start, stop, every, cluster, workers,
            lead_minutes=minutes, method=f"nowcast, method {used(method, chosen)}",
            thresholds=rates, members=members, seed=seed,
        )  # fmt: skip
        return
    if cluster is not None or workers is not None:
        raise SettingsError(
            "--cluster: expected --from or --to with it, since one forecast is made by one "
            "process; give the first and the last time to forecast from"
        )
    form = next((one for one in PRODUCTS.values() if one.ending == out.suffix), None)
    if form is not None:
        form.require()
    elif out.suffix[1:].isalpha() and out.suffix != ".zarr" and not is_netcdf(out):
        endings = ", ".join((".nc", ".zarr", *(one.ending for one in PRODUCTS.values())))
        raise SettingsError(
            f"--out: expected a name that ends in {endings}, found {out}; end it in one of these"
        )
    else:
        check_replaceable(out)
    with ExitStack() as stack:
        if _is_folder_of_scans(rain):
            folder = Path(stack.enter_context(TemporaryDirectory()))
            store = stack.enter_context(opened_rain(_ingested(rain, folder / "rain.zarr")))
        else:
            store = stack.enter_context(opened_rain(rain))
        chosen = forecaster(method, model, table, say, simulated=is_simulated(store))
        path = out
        if form is not None:
            path = Path(stack.enter_context(TemporaryDirectory()), "forecast.nc")
        frames, reference, missing = predict_to(
            path, chosen, store, at, minutes, method=f"nowcast, method {used(method, chosen)}",
            thresholds=rates, members=members, seed=seed, say=say,
        )  # fmt: skip
        if form is not None:
            form.write(stack.enter_context(open_forecast(path)), store, out)
    nothing = "; all is missing, since the last frame is missing everywhere" if missing else ""
    say(f"{frames} frames from {utc_text(reference)} UTC written to {out}{nothing}")


def _predict_each(
    rain: Path, out: Path, chosen: Forecaster, first: str | None, last: str | None, every: int,
    cluster: str | None, workers: int | None, **settings: Any,
) -> None:  # fmt: skip
    """Write a forecast from each frame of a stretch into a folder."""
    from nowcast.forecasters.series import predict_each
    from nowcast.rain.texts import parse_utc

    begin = np.datetime64("0001") if first is None else parse_utc("--from", first)
    end = np.datetime64("9999") if last is None else parse_utc("--to", last)
    if _is_folder_of_scans(rain):
        raise SettingsError(f"{rain}: with --from expected a rain store; nowcast ingest makes one")
    with connected(cluster, workers) as client, progress_bar("predict") as advance:
        made, existing, failed = predict_each(
            chosen, rain, out, begin, end, every=every, client=client, progress=advance, **settings
        )
    say(f"{out}: {made} forecasts written, {existing} there before, {len(failed)} not made")
    for at, reason in list(failed.items())[:5]:
        say(f"{at}: {reason}")
    if not made and not existing:
        raise DataError(f"{out}: expected a forecast at least, found none that could be made")


def _is_folder_of_scans(path: Path) -> bool:
    """Return whether a path is a folder of files, not a zarr store."""
    return path.is_dir() and not (path / "zarr.json").exists() and any(path.iterdir())


def _ingested(scans: Path, store: Path) -> Path:
    """Ingest a folder of scans into a store with the defaults of ``nowcast ingest``."""
    from nowcast.ingest.ingest import ingest

    try:
        with progress_bar("read the scans") as advance:
            report = ingest([scans], store, progress=advance, called=str(scans))
    except DataError as error:
        raise DataError(
            f"{scans}: expected a rain store (zarr) as nowcast ingest writes it, or a folder of "
            f"radar scans, found something else ({error}); nowcast ingest --help lists all formats"
        ) from error
    say(f"{report.written} scans read, {len(report.failed)} files not read")
    say(f"{scans}: of {report.area}, {report.coverage}")
    return store
