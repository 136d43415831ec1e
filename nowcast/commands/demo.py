"""``nowcast demo``: all of it, on a day of simulated scans."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from nowcast.commands.arguments import Cluster, Workers
from nowcast.commands.talk import progress_bar, say

#: Metres between the cells of the demo's grid, and cells along its sides.
SPACING, SIZE = 2000.0, 120
#: Minutes between scans.
STEP = 10


def demo(
    out: Annotated[Path, typer.Option(help="Folder for all that is made.")] = Path("nowcast-demo"),
    seed: Annotated[int, typer.Option(min=0, help="Of the simulated weather.")] = 0,
    cluster: Cluster = "local",
    workers: Workers = None,
    hours: Annotated[float, typer.Option(help="Hours to simulate.")] = 24.0,
    serve: Annotated[
        bool, typer.Option("--serve", help="Then show the forecast as a page, until Ctrl-C.")
    ] = False,
) -> None:
    """Simulate a day of radar scans, then ingest, train, predict, verify and plot it."""
    from daskdl.cluster import connect
    from nowcast.commands import serve as page
    from nowcast.commands import verify
    from nowcast.forecasters.predict import predict
    from nowcast.forecasters.trained import Trained
    from nowcast.ingest.ingest import ingest
    from nowcast.model.settings import TrainSettings
    from nowcast.model.train import train
    from nowcast.plot import animate_forecast
    from nowcast.rain.store import open_rain, write_dataset
    from nowcast.simulate import simulate

    if serve:
        page.require_server()
    began = time.monotonic()
    scans, store = out / "scans", out / "rain.zarr"
    say("1 of 5  simulate a day of radar scans, ODIM_H5 volumes every 10 min")
    with progress_bar("simulate") as advance:
        simulate(scans, hours=hours, step_minutes=STEP, seed=seed, progress=advance)
    with connect(cluster, workers=workers) as client:
        say(f"2 of 5  ingest them onto a grid of {SIZE} x {SIZE} cells of {SPACING / 1000:g} km")
        with progress_bar("ingest") as advance:
            ingest([scans], store, size=SIZE, spacing=SPACING, client=client, progress=advance)
        say("3 of 5  train a network on the day's first part")
        settings = TrainSettings(draws=4, cells=48, epochs=2)
        model = train(store, out / "model", settings, client, True, say)
    say("4 of 5  verify it on the last part, against methods without training")
    rain = open_rain(store)
    chosen = verify.choose(None, out / "model")
    scores = verify.score([rain], chosen, model=model)
    verify.write(scores, out, [rain], chosen)
    say("5 of 5  forecast and show the rainiest hour of that part")
    test, leads = model.split.test[0], round(model.lead_minutes / STEP)
    index = _rainiest(rain["rain_rate"].values, rain["time"].values, (test.first, test.last),
                      model.n_in, leads)  # fmt: skip
    start = str(rain["time"].values[index].astype("datetime64[s]"))
    forecast = predict(Trained(model), rain, start, method="network (nowcast demo)")
    write_dataset(forecast, out / "forecast.zarr")
    observed = rain["rain_rate"].isel(time=slice(index + 1, index + 1 + leads))
    last = rain["rain_rate"].isel(time=[index])
    animate_forecast(forecast, out / "forecast.gif", observed=observed, before=last)
    verify.show(scores)
    say(f"simulated data; all files are in {out} ({time.monotonic() - began:.0f} s)")
    if serve:
        page.serve(out / "forecast.zarr", observed=store)


def _rainiest(
    rain: np.ndarray, times: np.ndarray, part: tuple[np.datetime64, np.datetime64], n_in: int,
    n_out: int,
) -> int:  # fmt: skip
    """Return the index of the last input frame whose next ``n_out`` frames have the most rain."""
    totals = np.nansum(rain, axis=(1, 2))
    inside = np.flatnonzero((times >= part[0]) & (times <= part[1]))
    candidates = range(inside[0] + n_in - 1, inside[-1] - n_out + 1)
    return max(candidates, key=lambda i: totals[i + 1 : i + 1 + n_out].sum())
