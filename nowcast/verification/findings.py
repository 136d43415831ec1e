"""Findings: scores as sentences: which method is better than the reference, where, and why."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np
import xarray as xr
from numpy.typing import NDArray

#: Threshold in mm h-1 at which the motion is checked for faults.
RAIN = 1.0


def findings(scores: xr.Dataset) -> list[str]:
    """Return quotable sentences about the scores, warnings first.

    "Better" and "worse" mean that the 95 % interval of the paired difference does not hold 0.
    The example of :func:`~nowcast.verification.verify` calls this function.
    """
    lines = motion_faults(scores)
    reference = scores.attrs.get("reference")
    if not reference:
        return lines
    others = [name for name in scores["forecaster"].to_numpy().tolist() if name != reference]
    if not scores["csi_difference_low"].sel(forecaster=others).notnull().any():
        lines.append(
            "Too few independent cases for intervals: nothing can be said of who is better."
        )
        return lines
    for forecaster in others:
        here = scores.sel(forecaster=forecaster)
        lines.append(f"{forecaster} against {reference}: {_by_threshold(here, 'csi', 'CSI', 1)}.")
        if np.isfinite(here["crps_difference"]).any():
            lines.append(f"{forecaster} against {reference}: {_crps(here)}.")
        elif here["roc_area"].notnull().any():
            text = _by_threshold(here, "brier", "Brier score", -1)
            lines.append(f"{forecaster} against {reference}: {text}.")
    events = int(scores.attrs.get("n_events", 1))
    if events < 5:
        lines.append(
            f"The intervals are from {events} event{'s' if events > 1 else ''}: other weather may "
            "give another order."
        )
    return lines


def motion_faults(scores: xr.Dataset) -> list[str]:
    """Say where extrapolation is worse than persistence; with the right motion it hardly ever is.

    Rain moved along its own motion is nearer to the future rain than rain that stays. If it is not,
    the motion is wrong, and all methods that use it are misjudged.
    """
    names = scores["forecaster"].to_numpy().tolist()
    if "persistence" not in names:
        return []
    thresholds = scores["threshold"].to_numpy()
    threshold = float(thresholds[np.argmin(np.abs(np.log(thresholds / RAIN)))])
    csi = scores["csi"].sel(threshold=threshold)
    minutes = lead_texts(scores)
    lines = []
    for name in names:
        if not name.endswith("extrapolation"):
            continue
        below = (csi.sel(forecaster=name) < csi.sel(forecaster="persistence")).to_numpy()
        if below.any():
            lines.append(
                f"Fault of the motion: {name} is below persistence at {threshold:g} mm/h "
                f"{_leads(minutes, below)}; look at the motion before anything that builds on it."
            )
    return lines


def _by_threshold(here: xr.Dataset, score: str, title: str, sign: int) -> str:
    """Say where a score is better or worse; thresholds with equal verdicts are joined."""
    minutes = lead_texts(here)
    verdicts: dict[str, list[str]] = {}
    for threshold in here["threshold"].to_numpy().tolist():
        at = here.sel(threshold=threshold)
        text = _verdict(at, score, sign, minutes)
        verdicts.setdefault(text, []).append(f"{threshold:g}")
    return f"{title} at " + "; at ".join(
        f"{_join(names)} mm/h: {text}" for text, names in verdicts.items()
    )


def _crps(here: xr.Dataset) -> str:
    return f"CRPS {_verdict(here, 'crps', -1, lead_texts(here))}"


def _verdict(at: xr.Dataset, score: str, sign: int, minutes: Sequence[str]) -> str:
    """Return the leads, as text, at which a forecaster is better, worse or the same."""
    low, high = (at[f"{score}_difference_{end}"].to_numpy() for end in ("low", "high"))
    known = np.isfinite(low)
    if not known.any():
        return "too few events"
    better = known & (low > 0 if sign > 0 else high < 0)
    worse = known & (high < 0 if sign > 0 else low > 0)
    if not better.any() and not worse.any():
        return "no difference"
    parts = [
        f"{word} {_leads(minutes, where)}"
        for word, where in (("better", better), ("worse", worse))
        if where.any()
    ]
    if not (better | worse)[known].all():
        parts.append("else no difference")
    return ", ".join(parts)


def _leads(minutes: Sequence[str], where: NDArray[np.bool_]) -> str:
    """Return runs of leads as text: "from +25 to +60 min", "at +5 min"."""
    if where.all() and len(where) > 1:
        return "at all lead times"
    runs = []
    for yes, group in groupby(range(len(where)), key=lambda i: bool(where[i])):
        indices = list(group)
        if yes:
            first, last = minutes[indices[0]], minutes[indices[-1]]
            runs.append(f"at +{first}" if first == last else f"from +{first} to +{last}")
    return _join(runs) + " min"


def _join(words: Sequence[str]) -> str:
    """Join words by commas and an "and"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def lead_texts(scores: xr.Dataset) -> list[str]:
    """Return leads in minutes, as text."""
    return [f"{lead:g}" for lead in scores["lead_time"].to_numpy() / np.timedelta64(60, "s")]
