"""The methods of the comparison by name: registered methods, trained models, and pysteps'."""

from __future__ import annotations

import importlib.metadata
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from ci.bench.skill.events import Event
from ci.bench.skill.scores import PROBABLE, THRESHOLDS, Forecast
from daskdl.errors import SettingsError
from nowcast.forecasters import Forecaster, Sprog, Steps, forecaster, method_names
from nowcast.forecasters.forecaster import frames_read
from nowcast.lagrangian.exceedance import MarginTable
from nowcast.lagrangian.frames import frames_back
from nowcast.verification.case import occurs

#: Least number of frames for every method; each uses as many of the last ones as it needs.
N_IN = 4
#: Members of ensembles.
MEMBERS = 20
#: The peer's methods that run by default, and the beginning of a trained model's name.
PEERS = ("pysteps:extrapolation", "pysteps:sprog", "pysteps:steps")
PEER, MODEL = "pysteps:", "model:"
#: Methods with members.
ENSEMBLES = ("steps", "pysteps:steps", "pysteps:linda")


def names() -> list[str]:
    """Return the names of the methods that run by default, ours first."""
    return [n for n in method_names() if not n.startswith(PEER) and n != "model"] + list(PEERS)


def run(name: str, event: Event, start: int, leads: list[int], cache: Path) -> Forecast:
    """Forecast from frame ``start`` of an event for lead times in minutes.

    The peer's forecasts are cached with their seconds, as they do not depend on our code. Ours are
    made anew.

    Raises
    ------
    SettingsError
        If the method is unknown.
    """
    if not name.startswith(PEER):
        return _run(name, event, start, leads)
    version = importlib.metadata.version("pysteps")
    at = event.time[start].astype("datetime64[m]")
    file = f"{name.removeprefix(PEER)}-{at}-{'-'.join(map(str, leads))}.npz"
    path = cache / f"pysteps-{version}" / event.name / file
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        _save(path, _run(name, event, start, leads))
    return _loaded(path)


def _run(name: str, event: Event, start: int, leads: list[int]) -> Forecast:
    method = _method(name)
    if isinstance(method, Sprog | Steps):
        # Use margins that were fitted without this radar.
        method = replace(method, table=left_out(event.radar) or method.table)
    frames = event.rain[start - frames_in(event.step) + 1 : start + 1]
    steps = [lead // event.step for lead in leads]
    began = time.process_time()
    made = method.forecast(
        frames[-frames_read(method, event.step) :],
        steps[-1],
        spacing_km=event.spacing,
        step_minutes=event.step,
        thresholds=THRESHOLDS,
        members=MEMBERS if name in ENSEMBLES else 0,
    )
    seconds = time.process_time() - began
    at = [k - 1 for k in steps]
    members = None if made.members is None else made.members[:, at]
    if made.probability is None:
        return Forecast(made.rain[at], members, seconds=seconds)
    decides = getattr(made, "event_probability", None) is not None
    yes = {t: occurs(made, t)[at] for t in made.thresholds} if decides else None
    return Forecast(made.rain[at], members, made.exceedance(PROBABLE)[at], yes, seconds)


def frames_in(step: int) -> int:
    """Return the number of input frames for all methods at a step in minutes."""
    return max(N_IN, frames_back(step))


def _method(name: str) -> Forecaster:
    if name.startswith(MODEL):
        return forecaster("model", Path(name.removeprefix(MODEL)))
    try:
        return forecaster(name)
    except SettingsError as error:
        raise SettingsError(
            f"--methods: expected names among {', '.join(names())} and {MODEL}FOLDER, "
            f"found {name!r}"
        ) from error


def left_out(radar: str) -> MarginTable | None:
    """Return the margins fitted without a radar, None if no margins were fitted on it."""
    tables = json.loads((Path(__file__).parent / "left_out.json").read_text())
    return MarginTable(**tables[radar]) if radar in tables else None


def _save(path: Path, forecast: Forecast) -> None:
    """Write a forecast in float16 dB, a hundredth of a dB near the thresholds."""
    members = forecast.rain[np.newaxis] if forecast.members is None else forecast.members
    with np.errstate(divide="ignore"):
        decibel = 10 * np.log10(np.maximum(members, 1e-9)).astype(np.float16)
    partial = path.with_suffix(".partial.npz")
    np.savez_compressed(
        partial,
        decibel=decibel,
        seconds=forecast.seconds,
        ensemble=forecast.members is not None,
    )
    partial.rename(path)


def _loaded(path: Path) -> Forecast:
    with np.load(path) as arrays:
        members = 10 ** (arrays["decibel"].astype(np.float32) / 10)
        members[members < 1e-6] = 0
        seconds = float(arrays["seconds"])
        ensemble = bool(arrays["ensemble"])
    return Forecast(members.mean(0), members if ensemble else None, seconds=seconds)
