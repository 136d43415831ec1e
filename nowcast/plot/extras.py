"""Rows of a picture beside the field of rain: probabilities and members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from daskdl.errors import SettingsError

if TYPE_CHECKING:
    import xarray as xr

#: Rain rate in mm h-1 whose probability is shown unless others are asked for.
THRESHOLD = 1.0


def extra_rows(
    name: str, forecast: xr.Dataset, thresholds: Sequence[float] | None, members: int
) -> tuple[dict[str, xr.DataArray], dict[str, float]]:
    """Give the rows of a forecast that are not its field of rain.

    Parameters
    ----------
    name : str
        Of the forecast.
    forecast : Dataset
        As ``nowcast predict`` writes it.
    thresholds : sequence of float, optional
        Rain rates in mm h-1 whose probability is wanted; by default 1, if the forecast has it.
    members : int
        How many members, if there are any.

    Returns
    -------
    rows : dict of str to DataArray (lead_time, y, x)
    probabilities : dict of str to float
        The names of those rows that are probabilities, with their thresholds.

    Raises
    ------
    SettingsError
        When the forecast has probabilities, but not of a threshold that was asked for.
    """
    rows: dict[str, xr.DataArray] = {}
    probabilities: dict[str, float] = {}
    for threshold in (THRESHOLD,) if thresholds is None else thresholds:
        field = _probability(forecast, threshold, asked=thresholds is not None)
        if field is not None:
            row = f"{name}\n{threshold:g} mm/h or more"
            rows[row], probabilities[row] = field, threshold
    if "rain_rate_members" in forecast:
        fields = forecast["rain_rate_members"].drop_vars("realization", errors="ignore")
        for k in range(min(members, fields.sizes["realization"])):
            rows[f"{name}\nmember {k + 1}"] = fields.isel(realization=k)
    return rows, probabilities


def _probability(forecast: xr.Dataset, threshold: float, *, asked: bool) -> xr.DataArray | None:
    """Probability of a threshold, else the fraction of members; nothing when there is neither."""
    if "exceedance_probability" in forecast:
        known = forecast["threshold"].values
        matches = abs(known - threshold) < 1e-6 * max(1.0, threshold)
        if matches.any():
            row = forecast["exceedance_probability"].isel(threshold=int(matches.argmax()))
            return row.drop_vars("threshold")
        if asked:
            raise SettingsError(
                f"--threshold: expected one of the forecast's, "
                f"{', '.join(f'{value:g}' for value in known)} mm/h, found {threshold:g}"
            )
    if "rain_rate_members" in forecast:
        fields = forecast["rain_rate_members"]
        reached = (fields >= threshold).where(fields.notnull()).mean("realization")
        return reached.astype("float32")
    return None
