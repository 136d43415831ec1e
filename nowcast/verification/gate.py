"""The gate: a test whether a trained network beats S-PROG on unseen events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from daskdl.errors import DataError
from nowcast.forecasters import forecaster
from nowcast.forecasters.forecaster import frames_read
from nowcast.forecasters.trained import Trained
from nowcast.model.archives import Archive
from nowcast.model.folder import Model
from nowcast.model.model import NowcastModel
from nowcast.model.split import minutes
from nowcast.rain.identity import is_simulated
from nowcast.verification.findings import findings
from nowcast.verification.report import plain
from nowcast.verification.verify import verify

#: Reference that a network has to beat, and rain rates in mm h-1; `RAIN` decides.
AGAINST = "sprog"
THRESHOLDS, RAIN = (0.1, 1.0, 5.0), 1.0
#: Least number of events; fewer prove nothing, whatever the interval.
FEWEST_EVENTS = 3


@dataclass(frozen=True)
class Verdict:
    """Outcome of the comparison with S-PROG."""

    passed: bool  #: Whether ``--method auto`` may take the network.
    sentence: str  #: The reason, as a sentence for people.
    findings: list[str]  #: See `nowcast.verification.findings.findings`.
    n_events: int
    n_cases: int
    #: CSI at 1 mm/h minus S-PROG's, and its interval, by lead in minutes.
    csi_difference: dict[str, list[float | None]]
    #: Whether any of these events is simulated; the verdict then proves nothing for real rain.
    simulated: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as plain data."""
        return asdict(self)


def judge(
    model: Model, paths: Sequence[Path], progress: Callable[[int, int], None] | None = None
) -> Verdict:
    """Compare a network with S-PROG on the test stretches of its split.

    It passes if, on three events or more, the 95 % interval of its CSI at 1 mm/h minus S-PROG's is
    above 0 at half or at the end of its lead time, and nowhere (0.1, 1 and 5 mm/h) below 0.

    - ``paths``: the stores with test stretches in the network's split.
    - ``progress``: see `nowcast.verification.verify`.
    """
    parts = []
    step, spacing = None, None
    if isinstance(model, NowcastModel):
        step, spacing = model.step, model.spacing[1]
    for path in paths:
        archive = Archive.open(path, step, spacing)
        ahead = model.lead_minutes / minutes(archive.step)
        for stretch in model.split.of_store("test", archive.name):
            part = archive.rain.sel(time=slice(stretch.first, stretch.last))
            if part.sizes["time"] >= frames_read(Trained(model), minutes(archive.step)) + ahead:
                parts.append((archive.step, part, is_simulated(archive.store)))
    if not parts:
        return _unproved("there is no test stretch that is long enough")
    longest = max(step for step, _, _ in parts)
    used = [one for one in parts if longest % one[0] == np.timedelta64(0)]
    unused = len(parts) - len(used)
    n_out = max(1, round(model.lead_minutes / minutes(longest)))
    half = n_out // 2 if n_out > 1 and n_out % 2 == 0 else 1
    methods = {"model": Trained(model), AGAINST: forecaster(AGAINST)}
    try:
        scores = verify(
            [part for _, part, _ in used], methods, n_out, every=half, thresholds=THRESHOLDS,
            scales=(1,), reference=AGAINST, progress=progress,
        )  # fmt: skip
    except DataError as error:
        return _unproved(str(error))
    made = verdict(scores, simulated=any(simulated for _, _, simulated in used))
    if not unused:
        return made
    aside = (
        f"{unused} of {len(parts)} test stretches were left out, as the longest step, "
        f"{minutes(longest):g} min, is not a multiple of their steps"
    )
    return replace(made, sentence=f"{made.sentence} ({aside})", findings=[*made.findings, aside])


def verdict(scores: xr.Dataset, *, simulated: bool = False) -> Verdict:
    """Decide by scores of "model" with differences to `AGAINST`, on simulated or other events."""
    here = scores.sel(forecaster="model")
    low, high = here["csi_difference_low"], here["csi_difference_high"]
    better = bool((low.sel(threshold=RAIN) > 0).any())
    worse = bool((high < 0).any())
    events, cases = (int(scores.attrs[name]) for name in ("n_events", "n_cases"))
    passed = better and not worse and events >= FEWEST_EVENTS
    seen = f"{events} {'simulated ' if simulated else ''}events it has not seen"
    if passed:
        sentence = f"better than {AGAINST} at {RAIN:g} mm/h on {seen}"
    elif events < FEWEST_EVENTS:
        sentence = (
            f"not shown to be better than {AGAINST}: the test part has {events} "
            f"event{'s' if events != 1 else ''}, expected {FEWEST_EVENTS} or more (give stores to "
            "--test on)"
        )
    elif worse:
        sentence = f"worse than {AGAINST} on events it has not seen"
    else:
        sentence = f"no better than {AGAINST} on {seen}"
    minutes = scores["lead_time"].values / np.timedelta64(60, "s")
    differences = {
        f"{lead:g}": [
            plain(here[f"csi_difference{end}"].sel(threshold=RAIN)[k])
            for end in ("", "_low", "_high")
        ]
        for k, lead in enumerate(minutes)
    }
    return Verdict(passed, sentence, findings(scores), events, cases, differences, simulated)


def _unproved(why: str) -> Verdict:
    return Verdict(False, f"not shown to be better than {AGAINST}: {why}", [], 0, 0, {})
