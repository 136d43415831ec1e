"""Sums of rain as a Dataset with CF attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nowcast.rain.cf import TIME, TIME_ENCODING

if TYPE_CHECKING:
    from nowcast.sums.areas import Areas
    from nowcast.sums.rules import Rules

Float = NDArray[np.float32]

SUM = {
    "standard_name": "lwe_thickness_of_precipitation_amount",
    "long_name": "rain that fell in the window that ends at time",
    "units": "mm",
    "cell_methods": "time: sum",
}
SHARE = {"long_name": "share of the window that was observed", "units": "1"}
PROBABILITY = {"long_name": "probability that the sum reaches the amount", "units": "1"}


def sums_dataset(
    rain: xr.Dataset,
    end: np.datetime64,
    rules: Rules,
    totals: Float,
    shares: Float,
    areas: Areas | None,
) -> xr.Dataset:
    """Describe the sums of the windows that end at one time.

    Totals, mm of each member, NaN where missing, and shares that are observed: (window, field, y,
    x).
    """
    mapped = {"grid_mapping": "crs"}
    fields: dict[str, Any] = {"": (totals, shares.min(1), ("y", "x"), mapped)}
    coordinates: dict[str, Any] = {name: rain[name] for name in ("y", "x", "latitude", "longitude")}
    if areas is not None:
        means, known = areas.mean(totals)
        means[known < np.float32(rules.observed - 1e-4)] = np.nan
        observed = areas.mean(shares.min(1))
        fields["area_"] = (means, np.nan_to_num(observed[0]) * observed[1], ("area",), {})
        coordinates["area"] = (
            "area",
            np.array(areas.names, object),
            {"long_name": "name of the area"},
        )
    variables: dict[str, Any] = {"crs": rain["crs"]}
    for prefix, (amounts, share, space, others) in fields.items():
        along = ("window", "time", *space)
        variables[f"{prefix}rain_sum"] = (along, amounts.mean(1)[:, None], SUM | others)
        variables[f"{prefix}observed_share"] = (along, share[:, None], SHARE | others)
        if rules.amounts:
            reached = np.stack([_share_of_members(amounts, mm) for mm in rules.amounts], 1)
            variables[f"{prefix}exceedance_probability"] = (
                ("window", "amount", "time", *space), reached[:, :, None], PROBABILITY | others,
            )  # fmt: skip
    hours = [window / np.timedelta64(1, "h") for window in rules.over]
    # "h" and not "hours", which xarray would read as a timedelta and warn.
    coordinates["window"] = ("window", hours, {"long_name": "length of the window", "units": "h"})
    if rules.amounts:
        named = {"long_name": "amount that is reached", "units": "mm"}
        coordinates["amount"] = ("amount", np.array(rules.amounts), named)
    coordinates["time"] = ("time", np.array([end]), TIME, dict(TIME_ENCODING))
    return xr.Dataset(variables, coords=coordinates)


def _share_of_members(amounts: Float, mm: float) -> Float:
    """Return the share of members (window, field, ...) that reach an amount, NaN where missing."""
    reached = (amounts >= np.float32(mm)).mean(1, dtype=np.float32)
    return np.where(np.isnan(amounts).any(1), np.float32(np.nan), reached)
