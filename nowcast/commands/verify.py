"""``nowcast verify``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from daskdl.errors import DataError
from nowcast.commands.arguments import numbers
from nowcast.commands.talk import print_json, progress_bar, say
from nowcast.rain.utc import parse_utc, utc_text

if TYPE_CHECKING:
    import xarray as xr

    from nowcast.forecasters import FieldForecaster
    from nowcast.model.model import NowcastModel


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
    from nowcast.model.model import NowcastModel
    from nowcast.rain.store import open_rain
    from nowcast.verification import to_json

    if out is not None:
        # What cannot be written is better known before the work than after it.
        out.mkdir(parents=True, exist_ok=True)
    with open_rain(rain) as store:
        scores = score(
            NowcastModel.load(model),
            store,
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
    """Verify a model and the two forecasters that it has to beat on a stretch of a rain store.

    Without ``start`` and ``stop``, on the part of it that the model's split keeps for this.

    Parameters
    ----------
    model : NowcastModel
    rain : Dataset
        An opened rain store.
    thresholds, scales : tuple of float
        In mm h-1 and km, see :func:`nowcast.verification.verify`.
    start, stop : str, optional
        First and last time of the stretch, ISO 8601.
    every : int
        Frames between two forecasts.

    Raises
    ------
    DataError
        When the store's grid or step is not the model's, or the stretch has no run of frames that
        is long enough.
    SettingsError
        When a time, threshold or scale makes no sense.
    """
    from nowcast.forecasters import baselines
    from nowcast.forecasters.predict import square_spacing
    from nowcast.model.model import minutes
    from nowcast.model.train import grid_spacing
    from nowcast.rain.simulated import is_simulated
    from nowcast.rain.store import path_of, time_step
    from nowcast.verification import valid_starts, verify

    model.check_fits(path_of(rain), grid_spacing(rain), time_step(rain))
    first, last = model.split.test
    first = first if start is None else parse_utc("--from", start)
    last = last if stop is None else parse_utc("--to", stop)
    stretch = f"{utc_text(first)} to {utc_text(last)}"
    part = rain.sel(time=slice(first, last))
    starts = valid_starts(part["time"].values, model.n_in, model.n_out, model.step, stride=every)
    if not len(starts):
        raise DataError(
            f"{path_of(rain)}: expected {model.n_in} + {model.n_out} consecutive frames from "
            f"{stretch}, found {part.sizes['time']} frames and no such run; choose another stretch "
            "with --from and --to"
        )
    if first <= model.split.validation[1] and last >= model.split.train[0]:
        say(
            f"warning: {stretch} overlaps what the model was trained or validated on "
            f"({utc_text(model.split.train[0])} to {utc_text(model.split.validation[1])}); its "
            "scores flatter it"
        )
    others = baselines(model.n_out, square_spacing(rain) / 1000, minutes(model.step))
    if model.n_in < 2:
        say("the model reads a single frame, which shows no motion: no extrapolation beside it")
        others = {"persistence": others["persistence"]}
    forecasters: dict[str, FieldForecaster] = {"model": model, **others}
    with progress_bar("verify") as advance:
        scores = verify(
            part["rain_rate"],
            starts,
            forecasters,
            model.n_in,
            model.n_out,
            thresholds=thresholds,
            scales=scales,
            progress=advance,
        )
    scores.attrs["source"] = str(rain.attrs.get("title", path_of(rain)))
    if is_simulated(rain):
        scores.attrs["simulated"] = 1
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
