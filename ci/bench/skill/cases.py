"""Forecasts of all methods from the starts of an event, and their sums by `nowcast verify`."""

from __future__ import annotations

import importlib.metadata
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import joblib
import numpy as np
from numpy.typing import NDArray

from ci.bench.skill.events import Event
from nowcast.forecasters import Forecaster, Sprog, Steps, forecaster, method_names
from nowcast.forecasters.forecast import Forecast
from nowcast.forecasters.forecaster import frames_read
from nowcast.lagrangian.exceedance import MarginTable
from nowcast.lagrangian.frames import frames_back
from nowcast.verification.case import CaseSums, Totals, score_case
from nowcast.verification.fractions import band_power, radial_power

#: Thresholds of the table in mm h-1; yes and no and probabilities are judged at `PROBABLE`.
THRESHOLDS = (0.1, 1.0, 5.0, 10.0, 20.0)
PROBABLE = 1.0
JUDGED = THRESHOLDS.index(PROBABLE)
#: Side of the FSS windows, and wavelengths of the detail that blur takes away, in km.
FSS_KM, DETAIL_KM = 10.0, (4.0, 16.0)
#: Edges in dB of the bins of the forecast's rain rate: a tenth of a dB, and the thresholds.
EDGES = np.unique(np.concatenate([np.arange(-150, 600) / 10, 10 * np.log10(THRESHOLDS)]))
#: Least number of frames for every method; each uses as many of the last ones as it needs.
N_IN = 4
#: Members of ensembles, and the methods that have them.
MEMBERS, ENSEMBLES = 20, ("steps", "pysteps:steps", "pysteps:linda")
#: The peer's methods that run by default, and the beginning of a trained model's name.
PEERS = ("pysteps:extrapolation", "pysteps:sprog", "pysteps:steps")
PEER, MODEL = "pysteps:", "model:"


@dataclass(frozen=True)
class Case:
    """Sums of one start.

    Parameters
    ----------
    event, radar : str
    scored : ndarray, (lead,) bool
        Leads whose valid time is common to all leads.
    sums : CaseSums
        First of the methods' own yes and no, then, under their names and `FIELD`, of their fields.
        Yes and no is made for the largest CSI, so it says yes often; the CSI of other thresholds,
        the FSS and the CRPS are those of the field.
    probability : ndarray, (method, lead, BINS, 5) float64
        Of the probability of `PROBABLE`, see `nowcast.verification.probability.probability_sums`.
    table : ndarray, (method, lead, 2, bin) float64
        Pixels below and from `PROBABLE` on, by the forecast's rain rate.
    detail : ndarray, (method, lead, 2) float64
        Power of the rain in dB at the wavelengths `DETAIL_KM`, forecast and observed; for an
        ensemble the power of its first member.
    seconds : ndarray, (method,) float64
        CPU time for all leads.
    decides, probable : ndarray, (method,) bool
        Whether a method has its own yes and no, and its own probabilities.
    """

    event: str
    radar: str
    scored: NDArray[np.bool_]
    sums: CaseSums
    probability: NDArray[np.float64]
    table: NDArray[np.float64]
    detail: NDArray[np.float64]
    seconds: NDArray[np.float64]
    decides: NDArray[np.bool_]
    probable: NDArray[np.bool_]


def names() -> list[str]:
    """Return the names of the methods that run by default, ours first."""
    return [n for n in method_names() if not n.startswith(PEER) and n != "model"] + list(PEERS)


def cases(
    event: Event,
    chosen: Sequence[str],
    leads: Sequence[int],
    every: int,
    most: int | None,
    cache: Path,
) -> Iterator[Case]:
    """Yield the case of each start that reaches a valid time that all leads reach.

    Parameters
    ----------
    event : Event
    chosen : sequence of str
        Names of methods.
    leads : sequence of int
        Lead times in minutes, multiples of the event's step.
    every : int
        Minutes between two starts.
    most : int, optional
        Largest number of starts, the first ones.
    cache : path
        Folder of the peer's forecasts, which do not depend on our code.
    """
    methods = {name: method(name, event.radar) for name in chosen}
    n_in, ahead = max(N_IN, frames_back(event.step)), np.array(leads) // event.step
    starts = event.starts(n_in, leads, every)[:most]
    common = set.intersection(*({start + k for start in starts} for k in ahead.tolist()))
    for start in starts:
        scored = np.array([start + k in common for k in ahead])
        if scored.any():
            frames = event.rain[start - n_in + 1 : start + 1]
            made = [run(n, m, frames, event, ahead.tolist(), cache) for n, m in methods.items()]
            yield score(
                event, event.rain[start + ahead], dict(zip(methods, made, strict=True)), scored
            )


def method(name: str, radar: str) -> Forecaster:
    """Return a method by its name, with margins that were fitted without a radar."""
    if name.startswith(MODEL):
        return forecaster("model", Path(name.removeprefix(MODEL)))
    made = forecaster(name)
    if isinstance(made, Sprog | Steps):
        return replace(made, table=left_out(radar) or made.table)
    return made


def left_out(radar: str) -> MarginTable | None:
    """Return the margins fitted without a radar, None if no margins were fitted on it."""
    tables = json.loads((Path(__file__).parent / "left_out.json").read_text())
    return MarginTable(**tables[radar]) if radar in tables else None


def run(
    name: str, method: Forecaster, frames: NDArray[np.float32], event: Event, ahead: list[int],
    cache: Path,
) -> tuple[Forecast, float]:  # fmt: skip
    """Return a forecast at some leads in frames, and its CPU seconds; the peer's from the cache."""
    call = _timed
    if name.startswith(PEER):
        version = importlib.metadata.version("pysteps")
        call = joblib.Memory(cache / f"pysteps-{version}", verbose=0, compress=3).cache(_timed)
    members = MEMBERS if name in ENSEMBLES else 0
    past = frames[-frames_read(method, event.step) :]
    return call(method, past, ahead, event.spacing, event.step, members)


def _timed(
    method: Forecaster, frames: NDArray[np.float32], ahead: list[int], spacing: float, step: int,
    members: int,
) -> tuple[Forecast, float]:  # fmt: skip
    began = time.process_time()
    made = method.forecast(
        frames, ahead[-1], spacing_km=spacing, step_minutes=step, thresholds=THRESHOLDS,
        members=members,
    )  # fmt: skip
    return made.at([k - 1 for k in ahead]), time.process_time() - began


def score(
    event: Event,
    observed: NDArray[np.float32],
    made: dict[str, tuple[Forecast, float]],
    scored: NDArray[np.bool_],
) -> Case:
    """Score the forecasts of a start on the pixels that are known in all of them.

    Parameters
    ----------
    event : Event
    observed : ndarray, (lead, y, x) float32
        Rain rate in mm h-1.
    made : dict of str to (Forecast, float)
        Forecast and seconds of each method.
    scored : ndarray, (lead,) bool
    """
    forecasts = {name: forecast for name, (forecast, _) in made.items()}
    fields = {f"{n}, field": Forecast(f.rain, members=f.members) for n, f in forecasts.items()}
    totals = Totals(2 * len(made), len(observed), len(THRESHOLDS), spectrum_leads=())
    window = max(1, round(FSS_KM / event.spacing))
    sums = score_case(observed, forecasts | fields, THRESHOLDS, [window], scored, totals)
    table = np.zeros((len(made), len(observed), 2, len(EDGES) + 1))
    detail = np.zeros((len(made), len(observed), 2))
    known = np.isfinite(observed)
    for forecast in forecasts.values():
        known &= np.isfinite(forecast.rain)
    for m, forecast in enumerate(forecasts.values()):
        first = forecast.rain if forecast.members is None else forecast.members[0]
        for i in np.flatnonzero(scored):
            # Edges are float32, as thresholds are elsewhere.
            edges = (10 ** (EDGES / 10)).astype(np.float32)
            bins = np.digitize(forecast.rain[i][known[i]], edges)
            wet = observed[i][known[i]] >= PROBABLE
            table[m, i] = [np.bincount(bins[wet == w], minlength=len(EDGES) + 1) for w in (0, 1)]
            both = (np.where(known[i], one[i], np.float32(0)) for one in (first, observed))
            detail[m, i] = [
                band_power(*radial_power(one, event.spacing), *DETAIL_KM) for one in both
            ]
    return Case(
        event.name,
        event.radar,
        scored,
        sums,
        totals.probability[: len(made), :, JUDGED],
        table,
        detail,
        np.array([seconds for _, seconds in made.values()]),
        np.array([f.event_probability is not None for f in forecasts.values()]),
        np.array([not (f.probability is f.members is None) for f in forecasts.values()]),
    )
