"""The variable of a CF file that is rain, by its name and cell methods, and its valid values."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError

if TYPE_CHECKING:
    import xarray as xr

# Standard names, and names that pysteps and IMERG give without one, best first: a file may have
# several.
NAMES = {
    "rate": (
        "rainfall_rate", "lwe_precipitation_rate", "rainfall_flux", "precipitation_flux",
        "precip_intensity", "precipitation", "precipitationCal",
    ),
    "amount": (
        "precipitation_amount", "rainfall_amount", "lwe_thickness_of_precipitation_amount",
        "thickness_of_rainfall_amount", "precip_accum",
    ),
    "reflectivity": ("equivalent_reflectivity_factor",),
}  # fmt: skip
# Over these a composite takes the maximum.
VERTICAL = ("height:", "altitude:", "z:")
EXPECTED = {
    "rate": "mm h-1 or another length over time, or kg m-2 over time",
    "amount": "mm or another length, or kg m-2",
    "reflectivity": "dBZ",
}


def valid_values(values: NDArray[np.float32], rain: xr.DataArray) -> NDArray[np.float32]:
    """Return the values, with NaN outside of the file's valid range.

    ``valid_min``, ``valid_max`` and ``valid_range`` of packed numbers are packed as well, unless
    they are floating-point numbers (CF conventions, 2.5.1); xarray ignores them.
    """
    low, high = np.ravel(rain.attrs.get("valid_range", (np.nan, np.nan)))[[0, -1]]
    limits = [np.asarray(rain.attrs.get(key, one)) for key, one in
              (("valid_min", low), ("valid_max", high))]  # fmt: skip
    scale, offset = (rain.encoding.get(key, one) for key, one in
                     (("scale_factor", 1.0), ("add_offset", 0.0)))  # fmt: skip
    lowest, highest = (
        np.float32(limit if limit.dtype.kind == "f" else limit * scale + offset) for limit in limits
    )
    outside = (values < lowest) | (values > highest)
    return np.where(outside, np.float32(np.nan), values)


def kind_of(rain: xr.DataArray) -> str:
    """Return whether a variable is a "rate", an "amount" or "reflectivity"."""
    kinds = [kind for kind, names in NAMES.items() if _name_of(rain) in names]
    return kinds[0]


def _name_of(variable: xr.DataArray) -> str:
    """Return the standard name, or the name that pysteps writes without one."""
    return str(variable.attrs.get("standard_name") or variable.name)


def rain_of(dataset: xr.Dataset) -> xr.DataArray:
    """Return the variable with the best name, the only one that does not hold extremes."""
    for name in (name for names in NAMES.values() for name in names):
        named = [v for v in dataset.data_vars.values() if _name_of(v) == name and v.ndim >= 2]
        usable = [v for v in named if not _other_methods(v)]
        if named and len(usable) != 1:
            several = ", ".join(str(v.name) for v in usable) or _other_methods(named[0])
            raise DataError(
                f"expected one variable of {name}, its cell_methods mean or point of rates and "
                f"sum of amounts, found {several}; write the one meant into a file of its own"
            )
        if usable:
            return usable[0]
    variables = ", ".join(str(key) for key in list(dataset.data_vars)[:8])
    raise DataError(
        f"expected a variable with a standard_name of rain ({', '.join(NAMES['rate'][:2])}, "
        f"{NAMES['amount'][0]}...), found {variables or 'no variable'}"
        "; give the variable one of them"
    )


def _other_methods(rain: xr.DataArray) -> str:
    """Return cell methods that make numbers other than rain, such as "time: maximum"."""
    stated = re.sub(r"\(.*?\)", " ", str(rain.attrs.get("cell_methods", "")))
    over_time = {"point", "sum" if kind_of(rain) == "amount" else "mean"}
    others = [
        f"{name} {method}"
        for names, method in re.findall(r"((?:\w+:\s*)+)(\w+)", stated)
        for name in names.split()
        if name not in VERTICAL
        and method.lower() not in (over_time if "time" in name else {"point", "mean"})
    ]
    return ", ".join(others)
