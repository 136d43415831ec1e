"""Units of rain in files' spellings, as factors to mm h-1 and mm; and impossible numbers."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError

#: No rain is as much (mm h-1, the less the longer it is for), nor an echo (dBZ).
BEYOND_RAIN, BEYOND_ECHO = 900.0, 150.0
#: The same number beyond in so many cells is a code.
MANY = 4
#: Lengths in mm, times in hours; a kilogram of water on a square metre is 1 mm.
LENGTHS = {
    "mm": 1.0, "millimeter": 1.0, "millimetre": 1.0, "cm": 10.0, "m": 1000.0, "meter": 1000.0,
    "metre": 1000.0, "in": 25.4, "inch": 25.4,
}  # fmt: skip
HOURS = {
    "s": 1 / 3600, "sec": 1 / 3600, "second": 1 / 3600, "min": 1 / 60, "minute": 1 / 60,
    "h": 1.0, "hr": 1.0, "hour": 1.0, "d": 24.0, "day": 24.0,
}  # fmt: skip
#: Factors to metres of the units that axes and ranges have.
METRES = {
    "m": 1.0, "metre": 1.0, "meter": 1.0, "metres": 1.0, "meters": 1.0,
    "km": 1000.0, "kilometre": 1000.0, "kilometer": 1000.0, "kilometres": 1000.0,
    "kilometers": 1000.0,
}  # fmt: skip
TERM = re.compile(r"(?P<over>/?)\s*(?P<name>[A-Za-z]+)\s*(?:\^|\*\*)?\s*(?P<power>[+-]?\d+)?")


def take_out_codes(values: NDArray[np.float32], limit: float) -> None:
    """Set a few values beyond a limit, which no radar measures, to NaN; refuse many equal ones."""
    beyond = (np.abs(values) > limit) & ~np.isinf(values)
    codes, cells = np.unique(values[beyond], return_counts=True)
    if (code := codes[cells >= MANY][:1]).size:
        raise DataError(
            f"expected rain or dBZ, found {code[0]:g} in many cells, a number for missing ones "
            "that the file does not declare; set its _FillValue or nodata"
        )
    values[beyond] = np.nan


def rain_factor(units: str, kind: str) -> float | None:
    """Return the factor to mm h-1 of a "rate", or to mm of an "amount"; None for other units.

    Examples
    --------
    >>> [rain_factor(units, "rate") for units in ("mm/hour", "kg m^-2 s^-1", "in h-1")]
    [1.0, 3600.0, 25.4]
    >>> rain_factor("kg m**-2", "amount"), rain_factor("mm", "rate")
    (1.0, None)
    """
    powers: dict[str, int] = {}
    for term in re.split(r"[\s.]+|(?<!\*)\*(?!\*)|(?=/)", units.strip()):
        if not term:
            continue
        match = TERM.fullmatch(term)
        if match is None:
            return None
        power = int(match["power"] or 1) * (-1 if match["over"] else 1)
        name = match["name"]
        if name not in LENGTHS and name not in HOURS and name != "kg":
            name = name.lower()
        if name not in LENGTHS and name not in HOURS:
            name = name.removesuffix("s") or name
        powers[name] = powers.get(name, 0) + power
    per = [name for name, power in powers.items() if name in HOURS and power == -1]
    others = {name: power for name, power in powers.items() if name not in per}
    if len(per) != (kind == "rate"):
        return None
    if others == {"kg": 1, "m": -2}:
        factor = 1.0
    elif len(others) == 1 and next(iter(others.items()))[1] == 1 and next(iter(others)) in LENGTHS:
        factor = LENGTHS[next(iter(others))]
    else:
        return None
    return round(factor / HOURS[per[0]], 9) if per else factor
