"""Forecasts from many starts of a store, each a file, here or on a cluster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from daskdl.cluster.bounded import Died, in_order, in_task
from daskdl.errors import DaskdlError, DataError
from daskdl.files import remove
from nowcast.forecasters.forecaster import Forecaster
from nowcast.forecasters.predict import predict_to
from nowcast.rain.store import open_rain, opened_rain
from nowcast.rain.texts import utc_text

if TYPE_CHECKING:
    from distributed import Client


def predict_each(
    forecaster: Forecaster,
    store: Path,
    folder: Path,
    first: np.datetime64,
    last: np.datetime64,
    *,
    every: int = 1,
    ending: str = ".nc",
    client: Client | None = None,
    progress: Callable[[int, int], None] | None = None,
    **settings: Any,
) -> tuple[int, int, dict[str, str]]:
    """Write a forecast from each frame of a period; existing forecasts are kept.

    - ``store``: the rain store; workers of a cluster see it, and the folder, by the same names.
    - ``folder``: gets ``20200601T0050Z.nc`` and so on.
    - ``first``, ``last``: the stretch.
    - ``every``: frames from one start to the next.
    - ``ending``: of the files, which says their format.
    - ``client``: cluster that makes them; without one, this process does.
    - ``**settings``: of `nowcast.forecasters.predict.predict_to`.
    - returns ``failed``: the reason for each time without a forecast, such as too few frames.
    - raises DataError when no frame lies in the stretch.
    """
    with open_rain(store) as rain:
        times = rain["time"].values.astype("M8[us]")  # which reach farther than nanoseconds
        starts = times[(times >= first) & (times <= last)][::every]
        if not len(starts):
            raise DataError(
                f"{store}: expected frames from {utc_text(first)} to {utc_text(last)}, found none; "
                f"they run from {utc_text(times[0])} to {utc_text(times[-1])}"
            )
    folder.mkdir(parents=True, exist_ok=True)
    for partial in folder.glob(".*.partial"):  # of a run that was killed
        remove(partial)
    paths = {utc_text(t): folder / f"{_name(t)}{ending}" for t in starts}
    missing = [at for at, path in paths.items() if not path.exists()]
    failed: dict[str, str] = {}
    done = len(paths) - len(missing)
    calls = ((forecaster, store, at, paths[at], settings) for at in missing)
    for (_, _, at, *_), result in in_order(client, in_task(client, _predict_to), calls, "predict"):
        if isinstance(result, Died):
            failed[at] = result.reason
        elif result:
            failed[at] = result
        done += 1
        if progress is not None:
            progress(done, len(paths))
    return len(missing) - len(failed), len(paths) - len(missing), failed


def _predict_to(
    forecaster: Forecaster, store: Path, at: str, path: Path, settings: dict[str, Any]
) -> str:
    """Write one forecast; return the reason if there is none."""
    try:
        with opened_rain(store) as rain:
            predict_to(path, forecaster, rain, at, **settings)
    except DaskdlError as error:
        return str(error)
    return ""


def _name(moment: np.datetime64) -> str:
    return f"{utc_text(moment).replace('-', '').replace(':', '')}Z"
