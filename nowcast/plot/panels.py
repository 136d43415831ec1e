"""What a forecast's picture shows: fields by row, their times, and whether they are simulated."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class Panels:
    """Rows of fields with common lead times.

    Parameters
    ----------
    rows : dict
        Name of a row -> (lead_time, y, x) in mm h-1.
    lead_minutes : array (lead_time,)
    reference : datetime
    x, y : arrays
        Metres.
    simulated : bool
    """

    rows: dict[str, NDArray[np.float32]]
    lead_minutes: NDArray[Any]
    reference: datetime
    x: NDArray[Any]
    y: NDArray[Any]
    simulated: bool

    @classmethod
    def of(cls, forecast: xr.Dataset, observed: xr.DataArray | None) -> Panels:
        """Take a forecast and what was observed then, cropped to where there is anything."""
        rows = {} if observed is None else {"observed": observed.values}
        rows["forecast"] = forecast["rain_rate"].values
        seen = np.logical_or.reduce([np.isfinite(field).any(0) for field in rows.values()])
        ys, xs = (np.flatnonzero(seen.any(axis)) for axis in (1, 0))
        crop = np.s_[:, :, :]
        if len(ys) > 1 and len(xs) > 1:
            crop = np.s_[:, ys[0] : ys[-1] + 1, xs[0] : xs[-1] + 1]
        return cls(
            {name: field[crop] for name, field in rows.items()},
            forecast["lead_time"].values / np.timedelta64(1, "m"),
            forecast["forecast_reference_time"].values.astype("datetime64[s]").item(),
            forecast["x"].values[crop[2]],
            forecast["y"].values[crop[1]],
            is_simulated(forecast),
        )

    @property
    def title(self) -> str:
        """Say from when the forecast is, and if nothing of it is real."""
        prefix = "Simulated data: rain" if self.simulated else "Rain"
        return f"{prefix} forecast from {self.reference:%Y-%m-%d %H:%M} UTC"


def is_simulated(dataset: Any) -> bool:
    """Return whether a Dataset says of itself that it is simulated."""
    attributes = dataset.attrs
    text = " ".join(str(attributes.get(name, "")) for name in ("source", "title", "station"))
    return bool(attributes.get("simulated", False)) or "simulated" in text.lower()
