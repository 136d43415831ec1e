"""``nowcast verify``."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from daskdl.errors import SettingsError
from nowcast.commands.arguments import (
    Calibration,
    Json,
    MaybeCluster,
    Members,
    Model,
    Seed,
    Workers,
    connected,
    lead_minutes,
    numbers,
)
from nowcast.commands.talk import print_json, progress_bar, say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import xarray as xr
    from distributed import Client

    from nowcast.forecasters import Forecaster
    from nowcast.lagrangian.exceedance import MarginTable
    from nowcast.model.folder import Model as Network

#: Methods that are scored when none are named; a model comes first when one is given.
METHODS = ("persistence", "extrapolation", "sprog")
#: The first of these that is scored is the reference for the others.
REFERENCES = ("sprog", "extrapolation", "persistence")
#: Lead time when neither an option nor a model says one, minutes.
LEAD = 60.0


def verify(
    rain: Annotated[list[Path], typer.Argument(help="Rain stores that 'nowcast ingest' wrote.")],
    method: Annotated[
        str | None,
        typer.Option(
            help="Methods with commas between them, as for 'predict'; by default the model, if one "
            "is given, persistence, extrapolation and sprog."
        ),
    ] = None,
    model: Model = None,
    against: Annotated[
        str | None, typer.Option(help="Method that the others are compared with; by default sprog.")
    ] = None,
    lead: Annotated[
        str | None, typer.Option(help="How far ahead; by default as the model, or 60min.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for verify.json, verify.png and the report verify.html."),
    ] = None,
    thresholds: Annotated[
        str, typer.Option(help="Rain rates that make an event, mm h-1.")
    ] = "0.1,1,5,10",
    scales: Annotated[str, typer.Option(help="Neighbourhoods of the FSS, km.")] = "1,5,20",
    start: Annotated[
        str | None,
        typer.Option("--from", help="First time; by default all, or the model's test part."),
    ] = None,
    stop: Annotated[str | None, typer.Option("--to", help="Last time.")] = None,
    every: Annotated[
        int,
        typer.Option(min=1, help="Frames between two forecasts; leads that it divides are scored."),
    ] = 1,
    members: Members = 0,
    seed: Seed = 0,
    calibration: Calibration = None,
    cluster: MaybeCluster = None,
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Score forecasting methods on what was observed; needs no trained model.

    CSI, POD, FAR, frequency bias, MAE, Brier score and CRPS by lead time and threshold, FSS by
    scale, reliability, rank histogram, ROC and spectra, at the same valid times for all leads; with
    intervals over events, and sentences that say who is better where. With --out, the same command
    goes on where an interrupted one stopped.
    """
    from nowcast.lagrangian.exceedance import SHIPPED
    from nowcast.model.calibration import read_table
    from nowcast.model.folder import load_model
    from nowcast.rain.identity import is_simulated
    from nowcast.rain.store import opened_rain
    from nowcast.verification import to_json

    if out is not None:
        # What cannot be written is better known before the work than after it.
        out.mkdir(parents=True, exist_ok=True)
    network = None if model is None else load_model(model)
    table = SHIPPED if calibration is None else read_table(calibration)
    with ExitStack() as stack:
        stores = [stack.enter_context(opened_rain(path)) for path in rain]
        client = stack.enter_context(connected(cluster, workers))
        chosen = choose(method, model, table, simulated=all(map(is_simulated, stores)))
        scores = score(
            stores, chosen, model=network, against=against, lead=lead_minutes(lead),
            thresholds=numbers("--thresholds", thresholds), scales=numbers("--scales", scales),
            start=start, stop=stop, every=every, members=members, seed=seed, client=client,
            kept=None if out is None else out / ".cases",
        )  # fmt: skip
        if out is not None:
            write(scores, out, stores, chosen, members=members, seed=seed)
    if as_json:
        print_json(to_json(scores))
    else:
        show(scores)


def choose(
    methods: str | None,
    model: Path | None,
    table: MarginTable | None = None,
    *,
    simulated: bool = False,
) -> dict[str, Forecaster]:
    """Return the forecasters that are named, or the usual ones, by their names.

    ``simulated`` says whether the rain is, see `nowcast.forecasters.registry.forecaster`.

    Raises SettingsError when a name is none of the methods, or "model" has no folder.
    """
    from nowcast.forecasters import forecaster
    from nowcast.lagrangian.exceedance import SHIPPED

    if methods is None:
        names = [*(["model"] if model is not None else []), *METHODS]
    else:
        names = list(dict.fromkeys(name.strip() for name in methods.split(",") if name.strip()))
    if not names:
        raise SettingsError(
            "--method: expected names with commas between them, found none; "
            "such as --method sprog,persistence"
        )
    return {name: forecaster(name, model, table or SHIPPED, simulated=simulated) for name in names}


def score(
    stores: Sequence[xr.Dataset],
    forecasters: Mapping[str, Forecaster],
    *,
    model: Network | None = None,
    against: str | None = None,
    lead: float | None = None,
    thresholds: tuple[float, ...] = (0.1, 1, 5, 10),
    scales: tuple[float, ...] = (1, 5, 20),
    start: str | None = None,
    stop: str | None = None,
    every: int = 1,
    members: int = 0,
    seed: int = 0,
    client: Client | None = None,
    kept: Path | None = None,
) -> xr.Dataset:
    """Verify forecasters on rain stores.

    Of the store that a model was trained on, without ``start`` and ``stop``, only on the part that
    its split keeps for this.

    - ``stores``: opened rain stores.
    - ``model``: the one among the forecasters, for its lead time and its split.
    - ``against``: what the others are compared with; by default S-PROG, else extrapolation, else
      persistence.
    - ``lead``: longest lead time in minutes; by default the model's, or an hour.
    - ``thresholds``, ``scales``: in mm h-1 and km, see :func:`nowcast.verification.verify`.
    - ``start``, ``stop``: first and last time of the stretch, ISO 8601.
    - ``every``, ``members``, ``seed``: see :func:`nowcast.verification.verify`.
    - ``client``: cluster that makes and scores the forecasts; without one, this process does.
    - ``kept``: folder for what an interrupted run has done, apart for each combination of
      arguments.
    - raises DataError when a store's grid or step is not the model's, or no stretch has a run of
      frames that is long enough.
    - raises SettingsError when a time, lead, threshold or scale makes no sense.
    """
    from dask.base import tokenize

    from nowcast.model.model import NowcastModel
    from nowcast.model.split import frames_ahead
    from nowcast.rain.grid import grid_spacing
    from nowcast.rain.identity import is_simulated, path_of
    from nowcast.rain.store import time_step
    from nowcast.verification import verify

    if against is None:
        against = next((name for name in REFERENCES if name in forecasters), None)
    elif against not in forecasters:
        raise SettingsError(
            f"--against: expected one of the methods that are scored, {', '.join(forecasters)}, "
            f"found {against!r}"
        )
    if model is not None:
        stores = [_at_step_of(model, store) for store in stores]
    if isinstance(model, NowcastModel):
        for store in stores:
            model.check_fits(path_of(store), grid_spacing(store, path_of(store)), time_step(store))
    if lead is None:
        lead = LEAD if model is None else model.lead_minutes
    leads = frames_ahead(lead, max(map(time_step, stores)))
    parts = [stretch(store, model, start, stop) for store in stores]
    if kept is not None:
        about = [
            forecasters, lead, thresholds, scales, every, members, seed,
            [(part.attrs.get("id"), part["time"].values, part["x"].values) for part in parts],
        ]  # fmt: skip
        kept /= tokenize(about)
    with progress_bar("verify") as advance:
        scores = verify(
            [part["rain_rate"] for part in parts], forecasters, leads, every=every,
            thresholds=thresholds, scales=scales, members=members, seed=seed, reference=against,
            progress=advance, client=client, kept=kept,
        )  # fmt: skip
    if every > 1:
        shown = ", ".join(f"{t:g}" for t in scores["lead_time"].values / np.timedelta64(60, "s"))
        say(f"--every {every}: lead times {shown} min, valid times {scores.attrs['valid_times']}")
    scores.attrs["source"] = "; ".join(
        str(store.attrs.get("title", path_of(store))) for store in stores
    )
    if any(is_simulated(store) for store in stores):
        scores.attrs["simulated"] = 1
    return scores


def _at_step_of(model: Network, store: xr.Dataset) -> xr.Dataset:
    """Return a store at the time step at which a model is applied to it, and say so."""
    from nowcast.forecasters.predict import every_step
    from nowcast.model.folder import step_for
    from nowcast.rain.identity import path_of
    from nowcast.rain.store import time_step

    step, sentence = step_for(model, time_step(store), str(path_of(store)))
    if sentence:
        say(sentence)
    return every_step(store, 0, step)[0]


def stretch(
    store: xr.Dataset, model: Network | None, start: str | None, stop: str | None
) -> xr.Dataset:
    """Return the part of a store that is scored, and warn when the model knows some of it."""
    from nowcast.rain.identity import name_of
    from nowcast.rain.texts import parse_utc, utc_text

    first, last = store["time"].values[[0, -1]].astype("datetime64[s]")
    seen = []
    if model is not None:
        name = name_of(store)
        test = model.split.of_store("test", name)
        if test:
            first, last = test[0].first, test[-1].last
        seen = [
            part for which in ("train", "validation") for part in model.split.of_store(which, name)
        ]
    first = first if start is None else parse_utc("--from", start)
    last = last if stop is None else parse_utc("--to", stop)
    if any(first <= part.last and last >= part.first for part in seen):
        say(
            f"warning: {utc_text(first)} to {utc_text(last)} overlaps what the model was trained "
            f"or validated on ({utc_text(seen[0].first)} to {utc_text(seen[-1].last)}); its scores "
            "flatter it"
        )
    return store.sel(time=slice(first, last))


def write(
    scores: xr.Dataset,
    out: Path,
    stores: Sequence[xr.Dataset],
    forecasters: Mapping[str, Forecaster],
    *,
    members: int = 0,
    seed: int = 0,
) -> None:
    """Write ``verify.json``, ``verify.png`` and the report ``verify.html`` into a folder."""
    from nowcast.plot import plot_scores
    from nowcast.verification import write_json
    from nowcast.verification.html import write_report

    write_json(scores, out / "verify.json")
    plot_scores(scores, out / "verify.png")
    write_report(scores, out / "verify.html", stores, forecasters, members=members, seed=seed)
    say(f"scores written to {out}: verify.json, verify.png and verify.html")


def show(scores: xr.Dataset) -> None:
    """Print the table of the threshold nearest to 1 mm h-1, and what the scores say."""
    from rich.console import Console

    from nowcast.verification import findings, score_table

    thresholds = scores["threshold"].values
    threshold = float(thresholds[np.argmin(np.abs(np.log(thresholds)))])
    console = Console(width=None)
    console.print(score_table(scores, threshold))
    for sentence in findings(scores):
        console.print(sentence, highlight=False, soft_wrap=True)
