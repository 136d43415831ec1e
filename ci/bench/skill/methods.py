"""The methods of the comparison by name: our registry's, and pysteps' as the peer."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ci.bench.skill import peers
from ci.bench.skill.events import Event
from ci.bench.skill.forecast import Forecast
from ci.bench.skill.peers import MEMBERS
from daskdl.errors import SettingsError

#: Frames that every method gets; each uses as many of the last as it wants.
N_IN = 4
OURS = ("persistence", "extrapolation", "sprog", "auto")


def names() -> list[str]:
    """Names of all methods that run here, ours first."""
    return [*OURS, *peers.PEERS]


def run(name: str, event: Event, start: int, leads: list[int], cache: Path) -> Forecast:
    """Forecast from frame ``start`` of an event for lead times in minutes.

    The peer's answers are kept in the cache, with the time they took: they do not change with our
    code. Ours are made anew.
    """
    frames = event.rain[start - N_IN + 1 : start + 1]
    steps = [lead // event.step for lead in leads]
    if name in peers.PEERS:
        leads_name = "-".join(map(str, leads))
        file = f"{name.partition(':')[2]}-{event.time[start].astype('datetime64[m]')}-{leads_name}"
        path = cache / f"pysteps-{peers.version()}" / event.name / f"{file}.npz"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            began = time.process_time()
            made = peers.PEERS[name](frames, steps, event.step, event.spacing)
            _keep(path, made, time.process_time() - began)
        return _kept(path)
    began = time.process_time()
    made = _ours(name, frames, steps, event)
    return Forecast(made.rain, made.members, made.probability, time.process_time() - began)


def _ours(name: str, frames: NDArray[np.float32], steps: list[int], event: Event) -> Forecast:
    from nowcast.forecasters import forecaster

    if name not in OURS:
        raise SettingsError(f"--methods: expected names among {', '.join(names())}, found {name!r}")
    made = forecaster(name).forecast(
        frames,
        steps[-1],
        spacing_km=event.spacing,
        step_minutes=event.step,
        members=MEMBERS if name == "steps" else 0,
    )
    at = [k - 1 for k in steps]
    return Forecast(
        made.rain[at],
        None if made.members is None else made.members[:, at],
        None
        if made.probability is None
        else {t: p[at] for t, p in zip(made.thresholds, made.probability, strict=True)},
    )


def _keep(path: Path, forecast: Forecast, seconds: float) -> None:
    """Write a forecast in float16 dB, a hundredth of a dB near the thresholds."""
    members = forecast.rain[np.newaxis] if forecast.members is None else forecast.members
    with np.errstate(divide="ignore"):
        decibel = 10 * np.log10(np.maximum(members, 1e-9)).astype(np.float16)
    partial = path.with_suffix(".partial.npz")
    np.savez_compressed(
        partial, decibel=decibel, seconds=seconds, ensemble=forecast.members is not None
    )
    partial.rename(path)


def _kept(path: Path) -> Forecast:
    with np.load(path) as kept:
        members = 10 ** (kept["decibel"].astype(np.float32) / 10)
        members[members < 1e-6] = 0
        seconds = float(kept["seconds"])
        ensemble = bool(kept["ensemble"])
    return Forecast(members.mean(0), members if ensemble else None, None, seconds)
