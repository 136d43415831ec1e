"""Units of rain as files spell them, in factors to mm h-1 and mm: what UDUNITS reads."""

from __future__ import annotations

import re

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
