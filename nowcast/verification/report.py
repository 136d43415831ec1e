"""Scores for people and for machines: a table for the terminal, and JSON."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from daskdl.errors import SettingsError
from daskdl.files import replacing
from nowcast.verification.findings import findings, lead_texts

if TYPE_CHECKING:
    import xarray as xr
    from rich.table import Table

#: Scores and counts of one forecaster, lead and threshold, in the order of the JSON.
PER_THRESHOLD = (
    "csi", "pod", "far", "bias", "brier", "brier_reliability", "brier_resolution",
    "brier_uncertainty", "roc_area", "hits", "misses", "false_alarms", "correct_negatives",
)  # fmt: skip
#: Curves of one forecaster, lead and threshold.
RELIABILITY = ("forecast_probability", "observed_frequency", "forecasts")
#: Scores per threshold with differences to the reference.
DIFFERENCES = ("csi", "brier")


def to_json(scores: xr.Dataset) -> dict[str, Any]:
    """Return scores as a dictionary: settings, then forecaster -> lead -> threshold -> values.

    Keys are leads in minutes, thresholds in mm h-1 and scales in km in their shortest form ("30",
    "0.1", "5"); values are floats, counts are integers, and undefined values are None:
    ``to_json(scores)["forecasters"]["persistence"]["30"]["thresholds"]["1"]["csi"]``.
    """
    minutes = lead_texts(scores)
    thresholds = [f"{value:g}" for value in scores["threshold"].to_numpy()]
    forecasters: dict[str, Any] = {}
    for m, forecaster in enumerate(scores["forecaster"].to_numpy().tolist()):
        leads = forecasters[forecaster] = {}
        for i, lead in enumerate(minutes):
            at_lead = scores.isel(forecaster=m, lead_time=i)
            leads[lead] = _of_lead(at_lead) | {
                "thresholds": {
                    name: _cell(at_lead.isel(threshold=t)) for t, name in enumerate(thresholds)
                },
            }
    return {
        **{name: plain(value) for name, value in scores.attrs.items()},
        "findings": findings(scores),
        "scored_fraction": dict(zip(minutes, plain(scores["scored_fraction"]), strict=True)),
        "events": {
            lead: dict(zip(thresholds, plain(row), strict=True))
            for lead, row in zip(minutes, scores["events"], strict=True)
        },
        "forecasters": forecasters,
    }


def write_json(scores: xr.Dataset, path: str | os.PathLike[str]) -> None:
    """Write `to_json` to a file, which is complete or absent; `verify` has an example."""
    text = json.dumps(to_json(scores), indent=1, allow_nan=False)
    with replacing(Path(path)) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def score_table(scores: xr.Dataset, threshold: float = 1.0, scale: float | None = None) -> Table:
    """Return a table for a terminal: leads from top to bottom, one line per forecaster in each.

    The example of :func:`~nowcast.verification.verify` shows one.

    Parameters
    ----------
    scores : Dataset
        From `nowcast.verification.verify`.
    threshold : float
        The threshold to show, in mm h-1.
    scale : float, optional
        The scale of the FSS to show, in km; the middle one by default.

    Raises
    ------
    SettingsError
        If the scores were not made for this threshold or scale.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    scales = scores["scale"].to_numpy()
    scale = float(scales[len(scales) // 2]) if scale is None else scale
    for name, value in (("threshold", threshold), ("scale", scale)):
        if value not in scores[name].to_numpy():
            raise SettingsError(
                f"score_table: {name} {value:g} is not among "
                f"{', '.join(f'{known:g}' for known in scores[name].to_numpy())}; name one of these"
            )
    shown = scores.sel(threshold=threshold, scale=scale)
    compared = "csi_difference" in shown
    table = Table(
        title=_title(scores, threshold),
        caption=_caption(shown),
        box=SIMPLE_HEAD,
        padding=0,
        pad_edge=False,
    )
    numbers = ("CSI", "POD", "FAR", "bias", "MAE", f"FSS\n{scale:g} km")
    for header in (
        "lead\nmin",
        "events",
        "forecaster",
        *numbers,
        *(["CSI gain"] if compared else []),
    ):
        words = header in ("forecaster", "CSI gain")
        table.add_column(header, justify="left" if words else "right", no_wrap=True)
    forecasters = shown["forecaster"].to_numpy().tolist()
    for i, lead in enumerate(lead_texts(scores)):
        at_lead = shown.isel(lead_time=i)
        for m, forecaster in enumerate(forecasters):
            here = at_lead.isel(forecaster=m)
            values = (here[name] for name in ("csi", "pod", "far", "bias", "mae", "fss"))
            row = [f"+{lead}", f"{int(here['events'])}"] if m == 0 else ["", ""]
            row += [forecaster, *(_digits(value) for value in values)]
            if compared:
                row.append(gain(here))
            table.add_row(*row, end_section=m == len(forecasters) - 1)
    return table


def _title(scores: xr.Dataset, threshold: float) -> str:
    """Return the title: what was scored, and whether the rain is simulated."""
    rain = "simulated rain" if scores.attrs.get("simulated") else "rain"
    cases = scores.attrs["n_cases"]
    return f"Forecasts of {rain} at {threshold:g} mm/h or more, pooled over {cases} cases"


def _caption(shown: xr.Dataset) -> str:
    """Return the caption of the table's numbers."""
    fraction = shown["scored_fraction"].to_numpy()
    text = (
        "MAE in mm/h; events: observed pixels at or above the threshold; scored where observation "
        f"and all forecasters are finite, {fraction.max():.0%} to {fraction.min():.0%} of the grid"
    )
    if "csi_difference" in shown:
        text += f"; gain: {shown['csi_difference'].attrs['long_name']}"
        if shown["csi_difference_low"].notnull().any():
            text += ", with its 95 % interval"
    return text


def gain(here: xr.Dataset, form: str = "+.2f", interval: str = " [{:.2f} {:.2f}]") -> str:
    """CSI difference to the reference with its interval; empty for the reference."""
    if "csi_difference" not in here:
        return ""
    value, *ends = (float(here[f"csi_difference{end}"]) for end in ("", "_low", "_high"))
    if math.isnan(value) or not any((value, *ends)):
        return ""
    return f"{value:{form}}" + ("" if math.isnan(ends[0]) else interval.format(*ends))


def _of_lead(at: xr.Dataset) -> dict[str, Any]:
    """Values of one forecaster and lead without a threshold."""
    values = {name: plain(at[name]) for name in ("mae", "crps") if name in at}
    values |= _difference(at, "crps")
    if "rank_histogram" in at and at["rank_histogram"].notnull().any():
        values["rank_histogram"] = plain(at["rank_histogram"])
    if "power_ratio" in at and at["power_ratio"].notnull().any():
        names = (f"{km:.3g}" for km in at["wavelength"].to_numpy())
        values["power_ratio"] = dict(zip(names, plain(at["power_ratio"]), strict=True))
    return values


def _cell(at: xr.Dataset) -> dict[str, Any]:
    """Return the values of one forecaster, lead and threshold."""
    cell = {name: plain(at[name]) for name in PER_THRESHOLD if name in at}
    scales = [f"{value:g}" for value in at["scale"].to_numpy()]
    cell["fss"] = dict(zip(scales, plain(at["fss"]), strict=True))
    for name in DIFFERENCES:
        cell |= _difference(at, name)
    if "fss_difference" in at:
        cell["fss_difference"] = dict(zip(scales, plain(at["fss_difference"]), strict=True))
        ends = zip(*(plain(at[f"fss_difference_{end}"]) for end in ("low", "high")), strict=True)
        cell["fss_difference_interval"] = dict(zip(scales, map(list, ends), strict=True))
    if "forecasts" in at and at["forecasts"].notnull().any():
        cell["reliability"] = {name: plain(at[name]) for name in RELIABILITY}
    return cell


def _difference(at: xr.Dataset, score: str) -> dict[str, Any]:
    """Return the difference of a score to the reference's, and its interval."""
    name = f"{score}_difference"
    if name not in at:
        return {}
    return {
        name: plain(at[name]),
        f"{name}_interval": [plain(at[f"{name}_{end}"]) for end in ("low", "high")],
    }


def _digits(value: xr.DataArray) -> str:
    """Two digits; a dash if undefined."""
    number = float(value)
    return "-" if math.isnan(number) else f"{number:.2f}"


def plain(value: Any) -> Any:
    """Python numbers or lists of them; None for values that are not finite."""
    if hasattr(value, "to_numpy"):
        value = value.to_numpy()
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
