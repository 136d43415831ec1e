"""CF attributes of rain on a grid: coordinates, projection and the description of the file."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import xarray as xr

    from nowcast.rain.grid import Grid

CONVENTIONS = "CF-1.11"

RAIN_RATE = {
    "standard_name": "rainfall_rate",
    "long_name": "rain rate at the ground estimated by radar",
    "units": "mm h-1",
    "grid_mapping": "crs",
    "cell_methods": "time: point",
}

#: Name of the field of flags next to the rain, and its attributes except for the bits'.
FLAGS = "clean_flags"
CLEAN_FLAGS = {
    "standard_name": "rainfall_rate status_flag",
    "long_name": "steps of the cleaning that took echo out of a cell",
    "grid_mapping": "crs",
}

TIME = {
    "standard_name": "time",
    "long_name": "time",
    "axis": "T",
    # UTC as written in the files, leap seconds left out, as everywhere in numpy.
    "units_metadata": "leap_seconds: utc",
}

SCAN_TIME = {
    "long_name": "start of the scan, which time is rounded from",
    "units_metadata": "leap_seconds: utc",
}

QUALITY = {
    "standard_name": "quality_flag",
    "long_name": "quality of the radar that sees a cell best, 0 where none does",
    "units": "1",
    "grid_mapping": "crs",
}

RADAR_COUNT = {"long_name": "number of radars that the frame was made of", "units": "1"}

TIME_ENCODING = {
    "units": "seconds since 1970-01-01 00:00:00",
    "calendar": "standard",
    "dtype": "int64",
}


def grid_coordinates(grid: Grid) -> dict[str, xr.Variable]:
    """Return ``x``, ``y``, ``latitude``, ``longitude`` and ``crs`` of a grid with CF attributes."""
    import xarray as xr

    latitude, longitude = grid.latitude_longitude()
    crs = dict(grid.projection.to_cf()) | {"long_name": "map projection of x and y"}
    if crs.get("grid_mapping_name") == "polar_stereographic":
        # Required by CF; pyproj leaves it out where the standard parallel says which pole it is.
        pole = 90.0 if crs.get("standard_parallel", 90.0) > 0 else -90.0
        crs.setdefault("latitude_of_projection_origin", pole)
    axes = {
        name: xr.Variable(
            (name,),
            values,
            {
                "standard_name": f"projection_{name}_coordinate",
                "long_name": f"{name} coordinate of projection, centre of cell",
                "units": "m",
                "axis": name.upper(),
            },
            {"_FillValue": None},
        )
        for name, values in (("y", grid.y), ("x", grid.x))
    }
    geographic = {
        name: xr.Variable(
            ("y", "x"),
            values.astype(np.float32),
            {"standard_name": name, "long_name": name, "units": units},
            {"_FillValue": None},
        )
        for name, values, units in (
            ("latitude", latitude, "degrees_north"),
            ("longitude", longitude, "degrees_east"),
        )
    }
    return axes | geographic | {"crs": xr.Variable((), np.int32(0), crs)}


def rain_dataset(
    grid: Grid,
    time: NDArray[np.datetime64],
    rain_rate: NDArray[np.float32],
    *,
    attributes: dict[str, Any],
    global_attributes: dict[str, Any],
) -> xr.Dataset:
    """Return a rain Dataset in the form of a rain store.

    - ``grid``: grid of the frames.
    - ``time`` (n,): valid times, UTC, increasing.
    - ``rain_rate`` (n, ny, nx): rain rate in mm h-1; 0 is no rain, NaN is missing.
    - ``attributes``, ``global_attributes``: added to the attributes of ``rain_rate`` and of the
      Dataset, or replacing them.
    """
    import xarray as xr

    coordinates = grid_coordinates(grid)
    crs = coordinates.pop("crs")
    return xr.Dataset(
        {
            "rain_rate": (("time", "y", "x"), rain_rate, RAIN_RATE | attributes),
            "crs": crs,
        },
        coords={"time": ("time", np.asarray(time, "datetime64[ns]"), TIME, dict(TIME_ENCODING))}
        | coordinates,
        attrs=describe(**global_attributes),
    )


def describe(
    *,
    title: str,
    source: str,
    institution: str = "unknown",
    references: str = "Marshall and Palmer, 1948, Journal of Meteorology 5, 165-166",
    history: str = "",
    **others: Any,
) -> dict[str, Any]:
    """Return CF's global attributes, with ``history`` as its first line."""
    return {
        "Conventions": CONVENTIONS,
        "title": title,
        "institution": institution,
        "source": source,
        "history": history or history_line("created"),
        "references": references,
        **others,
    }


def history_line(action: str) -> str:
    """Return one line for the ``history`` attribute: time (UTC), program and action."""
    try:
        release = version("daskdl")
    except PackageNotFoundError:
        release = "source tree"
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} nowcast {release}: {action}"
