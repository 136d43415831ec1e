"""Whether data is simulated, by what it says of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import xarray as xr


def is_simulated(data: xr.Dataset | xr.DataArray) -> bool:
    """Tell whether a Dataset says of itself that it is simulated.

    An attribute ``simulated`` decides; without one, whether the source, the title or the station
    is called so, as in the scans that :func:`nowcast.simulate.simulate` writes.
    """
    said = str(data.attrs.get("simulated", "")).strip().lower()
    if said:
        return said not in {"0", "false", "no", "none"}
    text = " ".join(str(data.attrs.get(name, "")) for name in ("source", "title", "station"))
    return "simulated" in text.lower()
