"""``nowcast verify``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from daskdl.errors import DataError, SettingsError
from nowcast.commands.arguments import numbers
from nowcast.commands.talk import print_json, progress_bar, say

if TYPE_CHECKING:
    import xarray as xr

    from nowcast.model import NowcastModel


def run(
    model: Path,
    rain: Path,
    out: Path | None,
    *,
    thresholds: str,
    scales: str,
    start: str | None,
    stop: str | None,
    every: int,
    as_json: bool,
) -> None:
    """Print the scores and, given a folder, write them and their picture."""
    from nowcast.model import NowcastModel
    from nowcast.store import open_rain
    from nowcast.verification import to_json

    scores = score(
        NowcastModel.load(model),
        open_rain(rain),
        thresholds=numbers("--thresholds", thresholds),
        scales=numbers("--scales", scales),
        start=start,
        stop=stop,
        every=every,
    )
    if out is not None:
        write(scores, out)
    if as_json:
        print_json(to_json(scores))
    else:
        show(scores)


def score(
    model: NowcastModel,
    rain: xr.Dataset,
    *,
    thresholds: tuple[float, ...] = (0.1, 1, 5, 10),
    scales: tuple[float, ...] = (1, 5, 20),
    start: str | None = None,
    stop: str | None = None,
    every: int = 1,
) -> xr.Dataset:
    """Verify a model and the two methods that it has to beat on a stretch of a rain store.

    Without ``start`` and ``stop``, on the part of it that the model's split keeps for this.
    """
    from nowcast.forecasters import baselines
    from nowcast.store import time_step
    from nowcast.train import grid_spacing
    from nowcast.verification import valid_starts, verify

    model.check_fits("rain store", grid_spacing(rain), time_step(rain))
    first, last = model.split.test
    first, last = _time("--from", start, first), _time("--to", stop, last)
    part = rain.sel(time=slice(first, last))
    starts = valid_starts(part["time"].values, model.n_in, model.n_out, model.step, stride=every)
    if not len(starts):
        raise DataError(
            f"rain store: expected {model.n_in} + {model.n_out} consecutive frames from {first} "
            f"to {last}, found {part.sizes['time']} frames and no such run; choose another "
            "stretch with --from and --to"
        )
    if first <= model.split.validation[1] and last >= model.split.train[0]:
        say(
            f"warning: {first} to {last} overlaps what the model was trained or validated on "
            f"({model.split.train[0]} to {model.split.validation[1]}); its scores flatter it"
        )
    methods = {"model": model, **baselines(model.n_out)}
    with progress_bar("verify") as advance:
        scores = verify(
            part["rain_rate"],
            starts,
            methods,
            model.n_in,
            model.n_out,
            thresholds=thresholds,
            scales=scales,
            progress=advance,
        )
    scores.attrs["source"] = str(rain.attrs.get("title", "rain store"))
    if rain.attrs.get("simulated"):
        scores.attrs["simulated"] = rain.attrs["simulated"]
    return scores


def write(scores: xr.Dataset, out: Path) -> None:
    """Write ``verify.json`` and ``verify.png`` into a folder."""
    from nowcast.plot import plot_scores
    from nowcast.verification import write_json

    write_json(scores, out / "verify.json")
    plot_scores(scores, out / "verify.png")
    say(f"scores written to {out / 'verify.json'} and {out / 'verify.png'}")


def show(scores: xr.Dataset) -> None:
    """Print the table of the threshold nearest to 1 mm h-1."""
    from rich.console import Console

    from nowcast.verification import score_table

    thresholds = scores["threshold"].values
    threshold = float(thresholds[np.argmin(np.abs(np.log(thresholds)))])
    Console(width=None).print(score_table(scores, threshold))


def _time(option: str, text: str | None, default: np.datetime64) -> Any:
    if text is None:
        return default
    try:
        return np.datetime64(text.removesuffix("Z").strip().replace(" ", "T"), "s")
    except ValueError as error:
        raise SettingsError(
            f"{option}: expected a time such as 2020-02-07T13:20 (UTC), found {text!r}"
        ) from error
