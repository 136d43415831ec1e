"""Name of a rain store: its title, a digest of it, and whether it is simulated."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from nowcast.rain.store import path_of

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


def name_of(store: xr.Dataset) -> str:
    """Return the title of a rain store with a digest of its grid, first time and first frame.

    A model remembers by it which stores it was trained on. Titles alone are often the same: every
    month of one radar has that of the radar. A store that grows keeps its name, and so does one
    that was ingested anew from the same files.
    """
    digest = hashlib.sha256()
    if "crs" in store.variables:
        digest.update(str(store["crs"].attrs.get("crs_wkt", "")).encode())
    for axis in ("y", "x"):
        digest.update(np.round(store[axis].values).astype(np.int64).tobytes())
    first = store["rain_rate"].isel(time=slice(0, 1))
    digest.update(first["time"].values.astype("datetime64[s]").astype(np.int64).tobytes())
    digest.update(np.nan_to_num(first.values.astype(np.float32), nan=-1).tobytes())
    return f"{store.attrs.get('title', path_of(store))} [{digest.hexdigest()[:8]}]"
