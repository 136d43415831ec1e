"""Rain gauges: amounts of stations over windows of time, from CSV or CF netCDF."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError
from nowcast.radar.netcdf import open_dataset
from nowcast.rain.store import expecting

COLUMNS = ("station", "latitude", "longitude", "time", "mm")
AMOUNTS = {"lwe_thickness_of_precipitation_amount", "precipitation_amount", "rainfall_amount"}
MILLIMETRES = {"mm", "kg m-2", "kg/m2", "kg m**-2", "kg m^-2"}


@dataclass(frozen=True)
class Gauges:
    """Amounts of stations."""

    names: list[str]
    #: Degrees, (station,).
    latitude: NDArray[np.float64]
    longitude: NDArray[np.float64]
    time: NDArray[np.datetime64]  #: Ends of the windows, UTC, in order, (time,).
    amount: NDArray[np.float64]  #: (time, station): mm; NaN where a station has none.

    @classmethod
    def read(cls, path: Path) -> Gauges:
        """Read a CSV with the columns of `COLUMNS`, or a netCDF file of time series."""
        if not path.is_file():
            raise DataError(f"{path}: expected a file of gauges, found none there")
        gauges = _from_netcdf(path) if path.suffix in (".nc", ".nc4") else _from_csv(path)
        wrong = (gauges.amount < 0) | np.isinf(gauges.amount)
        if wrong.any():
            time, station = np.argwhere(wrong)[0]
            raise DataError(
                f"{path}: expected amounts of 0 mm or more, found {gauges.amount[time, station]:g} "
                f"of {gauges.names[station]} at {gauges.time[time]}; leave out missing amounts"
            )
        return gauges


def _from_csv(path: Path) -> Gauges:
    places: dict[str, tuple[float, float]] = {}
    amounts: dict[tuple[np.datetime64, str], float] = {}
    with path.open(newline="", encoding="utf-8-sig") as lines:
        reader = csv.DictReader(lines)
        if missing := [name for name in COLUMNS if name not in (reader.fieldnames or ())]:
            raise DataError(
                f"{path}: expected columns {', '.join(COLUMNS)}, found none named "
                f"{', '.join(missing)}; name them in the first line"
            )
        for number, row in enumerate(reader, start=2):
            try:
                place = float(row["latitude"]), float(row["longitude"])
                time = np.datetime64(row["time"].strip().removesuffix("Z"), "s")
                value = float(row["mm"]) if row["mm"].strip() else np.nan
            except (ValueError, AttributeError):
                raise DataError(
                    f"{path}, line {number}: expected numbers and a time such as "
                    f"2026-05-20T12:00Z, found {list(row.values())}; mend the line"
                ) from None
            name = row["station"].strip()
            if places.setdefault(name, place) != place or (time, name) in amounts:
                raise DataError(
                    f"{path}, line {number}: expected one place and one amount a time of {name!r}, "
                    "found another; give each station a name of its own"
                )
            amounts[time, name] = value
    names, times = sorted(places), sorted({time for time, _ in amounts})
    if not names:
        raise DataError(f"{path}: expected lines of gauges, found none")
    table = np.array([[amounts.get((time, name), np.nan) for name in names] for time in times])
    latitude, longitude = np.array([places[name] for name in names]).T
    return Gauges(names, latitude, longitude, np.array(times), table)


def _from_netcdf(path: Path) -> Gauges:
    with expecting(path, "a netCDF file of gauges", "give CSV"), open_dataset(path) as opened:
        dataset = opened.load()
    amounts = [
        variable for variable in dataset.data_vars.values()
        if variable.attrs.get("standard_name") in AMOUNTS and "time" in variable.dims
        and variable.ndim == 2
    ]  # fmt: skip
    named = {str(v.attrs.get("standard_name", k)): v for k, v in dataset.variables.items()}
    units = str(amounts[0].attrs.get("units")) if amounts else ""
    if not {"latitude", "longitude"} <= set(named) or units not in MILLIMETRES:
        raise DataError(
            f"{path}: expected one of {', '.join(sorted(AMOUNTS))} by time and station in mm, with "
            f"latitude and longitude (standard_name), found {', '.join(map(str, dataset))} "
            f"{f'in {units!r}' if amounts else ''}; name them as CF does"
        )
    series = amounts[0].transpose("time", ...).sortby("time")
    station = series.dims[1]
    names = series[station].values if station in series.coords else range(series.shape[1])
    return Gauges(
        [str(name) for name in names],
        np.asarray(named["latitude"].values, np.float64),
        np.asarray(named["longitude"].values, np.float64),
        series["time"].values.astype("datetime64[s]"),
        series.values.astype(np.float64),
    )
