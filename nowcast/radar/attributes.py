"""Attributes of HDF5 and netCDF objects as one text or number; groups and values of ODIM_H5."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError


def text_of(value: Any) -> str:
    """Return a text from bytes or an array with one element, without padding zeros and blanks."""
    if isinstance(value, np.ndarray | list | tuple):
        flat = np.asarray(value).reshape(-1)
        value = flat[0] if flat.size else ""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return str(value).strip("\x00 ")


def text(node: Any, name: str, default: str = "") -> str:
    """Return a text attribute of an object."""
    return text_of(node.attrs.get(name, default))


def number(node: Any, name: str, default: float | None = None) -> float:
    """Return a number of an object's attributes, also from an array or a text.

    Raises DataError if it is missing without a default, or not a single finite number.
    """
    value = node.attrs.get(name)
    if value is None:
        if default is None:
            raise DataError(f"expected an attribute {name!r} of {_name(node)}, found none")
        return default
    flat = np.asarray(value).reshape(-1)
    try:
        result = float(flat[0]) if flat.size == 1 else np.nan
    except (TypeError, ValueError):
        result = np.nan
    if not np.isfinite(result):
        raise DataError(f"expected {name!r} of {_name(node)} to be one number, found {value!r}")
    return result


def count(node: Any, name: str, most: int) -> int:
    """Return a count of an object's attributes, from 1 to ``most``."""
    value = number(node, name)
    if not 1 <= value <= most or value != int(value):
        raise DataError(
            f"expected {name!r} of {_name(node)} to be a number from 1 to {most}, found {value:g}"
        )
    return int(value)


def _name(node: Any) -> str:
    return str(getattr(node, "name", "the file"))


#: Names of reflectivity, the preferred one first.
REFLECTIVITY = ("DBZH", "DBZ", "TH", "DBTH", "DBZV", "reflectivity", "corrected_reflectivity", "DZ")


def datasets(file: Any, prefix: str = "dataset") -> list[str]:
    """Names of the groups called dataset1, dataset2 ..., in the order of their numbers."""
    names = [name for name in file if re.fullmatch(rf"{prefix}\d+", name)]
    return sorted(names, key=lambda name: int(name[len(prefix) :]))


def quantity(data: Any, above: Any) -> str:
    """Return the quantity of a data group, its own or the dataset's above."""
    for group in (data, above):
        if "what" in group and "quantity" in group["what"].attrs:
            return text(group["what"], "quantity")
    return ""


def says(key: str, *groups: Any) -> bool:
    """Return whether ``how`` of one of the groups says ``malfunc`` or ``simulated``."""
    stated = (text(group["how"], key) for group in groups if "how" in group)
    return any(one.lower() in ("true", "1") for one in stated)


def check_measured(file: Any) -> None:
    """Refuse a file that calls itself, or a dataset, simulated.

    Files of ``nowcast simulate`` are read: their stores say so in their titles.
    """
    by_us = "how" in file and text(file["how"], "software") == "nowcast"
    if not by_us and says("simulated", file, *(file[key] for key in datasets(file))):
        raise DataError(
            "expected what a radar measured, found how/simulated True; leave the file out, or "
            "take the attribute away where simulated rain is meant"
        )


def the_only(groups: Sequence[Any], name: str) -> Any:
    """Return the only one of some groups of one quantity, called ``name``."""
    if len(groups) > 1:
        raise DataError(
            f"expected {name} once, found it in {' and '.join(group.name for group in groups)}"
            "; write the one meant into a file of its own"
        )
    return groups[0]


def read_data(data: Any, above: Any, most: int) -> NDArray[np.float32]:
    """Return the values of a data group, (n, m) float32: -inf is undetect, NaN is nodata.

    Gain, offset and codes are in its own ``what`` or in the dataset's, ``above``; more than
    ``most`` values are damage. If both codes are one number, it is undetect: most of a radar's area
    has no echo, and writers of such files (the Bureau of Meteorology) have no other code for it.
    """
    raw = data["data"]
    if raw.ndim != 2 or not 0 < raw.size <= most or raw.dtype.kind not in "iuf":
        raise DataError(
            f"expected {raw.name} to be two-dimensional with numbers, at most {most}, found "
            f"{raw.dtype} {raw.shape}"
        )
    whats = [group["what"] for group in (data, above) if "what" in group]

    def value(key: str, default: float) -> float:
        owner = next((node for node in whats if key in node.attrs), None)
        not_a_number = owner is not None and key == "nodata" and text(owner, key) == "nan"
        return default if owner is None or not_a_number else number(owner, key)

    gain, offset = value("gain", 1.0), value("offset", 0.0)
    if gain == 0:
        raise DataError(f"expected a gain of {data.name} other than 0, found 0")
    nodata, undetect = value("nodata", np.nan), value("undetect", 0.0)
    stored = raw[:]
    highest = np.iinfo(raw.dtype).max if raw.dtype.kind in "iu" else undetect
    if np.isnan(nodata) and highest != undetect and (stored == highest).any():
        raise DataError(f"expected nodata of {data.name}, found none and {highest}; state nodata")
    values = (stored * np.float64(gain) + offset).astype(np.float32)
    values[stored == nodata] = np.nan
    values[stored == undetect] = -np.inf
    return values


def read_time(date: str, time: str) -> np.datetime64:
    """Return the time of ODIM's date (YYYYMMDD) and time (HHMMSS)."""
    try:
        if not re.fullmatch(r"\d{14}", date + time):
            raise ValueError
        return np.datetime64(
            f"{date[:4]}-{date[4:6]}-{date[6:8]}T{time[:2]}:{time[2:4]}:{time[4:6]}", "s"
        )
    except ValueError:
        raise DataError(
            f"expected a date YYYYMMDD and a time HHMMSS, found {date!r} and {time!r}"
        ) from None


def station(source: str) -> str:
    """Return the identifier of the radar or composite in an ODIM source attribute.

    The WMO number comes first, since files of one radar do not always have its other names.
    """
    parts = dict(part.split(":", 1) for part in source.split(",") if ":" in part)
    for key in ("WMO", "NOD", "RAD", "WIGOS", "PLC", "ORG", "CMT"):
        if parts.get(key, "").strip("0 "):
            return parts[key]
    return source or "unknown"
