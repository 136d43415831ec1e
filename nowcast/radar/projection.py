"""PROJ strings whose lengths are kilometres, as strings in metres."""

from __future__ import annotations

import re


def in_metres(projection: str) -> str:
    """Return a PROJ string in metres: an earth of some thousand "metres" is one in kilometres.

    Examples
    --------
    >>> in_metres("+proj=stere +lat_0=90 +a=6378.137 +b=6356.752")
    '+proj=stere +lat_0=90 +a=6378137.000 +b=6356752.000 +units=m'
    """

    def scaled(found: re.Match[str]) -> str:
        value = float(found[2])
        return f"{found[1]}{value * 1000.0 if value < 1e5 else value:.3f}"

    text = re.sub(r"(\+(?:a|b|R)=)([\d.]+)", scaled, projection)
    return re.sub(r"\s*\+units=\w+", "", text) + " +units=m"
