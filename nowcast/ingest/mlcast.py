"""A rain store in mlcast's convention for source data, for others to train on.

The convention (mlcast-dataset-validator 0.4.0, radar precipitation 0.3.0) is a rain store with the
standard name ``rainfall_flux``, GeoZarr's names for the projection, a list of missing times, and
the origin and licence of the data. It also asks for three years of data.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, field_validator

from nowcast.rain.cf import TIME, TIME_ENCODING
from nowcast.rain.store import open_rain, time_step, write_zarr
from nowcast.rain.texts import wrong_setting

VALIDATOR = "0.4.0"
#: Forms that the convention requires, and their descriptions.
FORMS = {
    "identifier": (
        r"(?a:[A-Z]{2}-\w+-\w+)",
        "COUNTRY-INSTITUTION-QUANTITY such as NL-knmi-rain_rate",
    ),
    "created_by": (r"[^<>]+ <[^<>@\s]+@[^<>@\s]+>", "'Name <name@example.org>'"),
    "created_with": (
        r"https://github\.com/mlcast-community/mlcast-dataset-[^-/@\s]+-[^/@\s]+@\S+",
        "https://github.com/mlcast-community/mlcast-dataset-INSTITUTION-NAME@VERSION",
    ),
}


class Origin(BaseModel):
    """Facts of a data set that the convention needs and files do not have."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    identifier: str
    """Country, institution and quantity, such as ``NL-knmi-rain_rate``."""
    created_by: str
    """Name and address of who made the store, as ``Name <name@example.org>``."""
    created_with: str
    """Place of the data set's recipe, with its version: the convention wants
    ``https://github.com/mlcast-community/mlcast-dataset-INSTITUTION-NAME@v0.1.0``."""
    license: str
    """SPDX identifier of the data's licence, such as ``CC-BY-4.0``."""
    version: str = "0.1.0"
    """Version of the data set."""

    @classmethod
    def of(cls, **values: Any) -> Origin:
        """Return the origin; raise SettingsError with one sentence where a value is wrong."""
        try:
            return cls(**values)
        except ValidationError as error:
            raise wrong_setting("mlcast, ", error) from None

    @field_validator(*FORMS)
    @classmethod
    def _check(cls, value: str, info: ValidationInfo) -> str:
        form, expected = FORMS[str(info.field_name)]
        if not re.fullmatch(form, value):
            raise ValueError(f"expected {expected}")
        return value

    def attributes(self) -> dict[str, str]:
        """Return the global attributes of the convention."""
        return {
            "license": self.license,
            "mlcast_created_on": datetime.now(UTC).isoformat(timespec="seconds"),
            "mlcast_created_by": self.created_by,
            "mlcast_created_with": self.created_with,
            "mlcast_dataset_version": self.version,
            "mlcast_dataset_validator_version": VALIDATOR,
            "mlcast_dataset_identifier": self.identifier,
        }


def write_mlcast(
    rain: str | os.PathLike[str], out: str | os.PathLike[str], origin: Origin
) -> NDArray[np.datetime64]:
    """Write a rain store in mlcast's convention, one chunk a time; return the missing times.

    Numbers do not change: 1 mm of rain is 1 kg m-2. An existing store is replaced.
    """
    with open_rain(rain) as dataset:
        dataset = dataset.drop_vars(
            [name for name in dataset.data_vars if name not in ("rain_rate", "crs")]
        )
        missing = missing_times(dataset["time"].values, time_step(dataset))
        dataset["rain_rate"].attrs |= {"standard_name": "rainfall_flux", "units": "kg m-2 h-1"}
        dataset["crs"].attrs["spatial_ref"] = dataset["crs"].attrs["crs_wkt"]
        dataset.attrs |= origin.attributes()
        encoding: dict[str, Any] = {"time": TIME_ENCODING}
        if missing.size:
            # The step is the same from the first time on; what differs is missing.
            first = dataset["time"].values[0].astype("datetime64[s]")
            dataset.attrs["consistent_timestep_start"] = str(first)
            attributes = TIME | {"long_name": "times of the archive that are missing"}
            attributes.pop("axis")
            dataset["missing_times"] = xr.Variable("missing_times", missing, attributes)
            encoding["missing_times"] = TIME_ENCODING
        write_zarr(dataset, Path(out), encoding=encoding)
    return missing


def missing_times(times: NDArray[np.datetime64], step: np.timedelta64) -> NDArray[np.datetime64]:
    """Return the missing times of equal steps between the first and the last one."""
    expected = np.arange(times[0], times[-1] + step, step)
    return np.setdiff1d(expected, times)
