"""Maps as indexed PNG, a pixel a cell, in the colours of ``nowcast plot``."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from nowcast.plot.figure import (
    COLOURS,
    EXTREME,
    LEVELS,
    MISSING,
    PROBABILITIES,
    PROBABILITY_LEVELS,
)

if TYPE_CHECKING:
    from nowcast.web.case import Case

#: Of the two scales: edges, colours from each edge on, unit.
SCALES: dict[str, tuple[tuple[float, ...], tuple[str, ...], str]] = {
    "rain": (LEVELS, (*COLOURS, EXTREME), "mm/h"),
    "probability": (PROBABILITY_LEVELS[:-1], PROBABILITIES, "%"),
}


def scale_of(quantity: str) -> str:
    """Return the name of the scale in which a quantity is shown."""
    return "probability" if quantity[0] == "p" else "rain"


def legend() -> dict[str, Any]:
    """Return the scales as the page draws them: levels in their unit, colours, grey of missing."""
    return {
        name: {
            "levels": [round(e * (100 if unit == "%" else 1), 3) for e in edges],
            "colours": colours,
            "units": unit,
            "missing": MISSING,
        }
        for name, (edges, colours, unit) in SCALES.items()
    }


def picture(case: Case, quantity: str, n: int) -> bytes:
    """Return a map as PNG, north up: dry is transparent, missing half-transparent grey.

    Raises
    ------
    KeyError
        When there is no such map.
    """
    from PIL import Image

    if (quantity, n) in case.pictures:
        return case.pictures[quantity, n]
    field = case.frame(quantity, n).astype(np.float32)
    edges, colours, _ = SCALES[scale_of(quantity)]
    # Half precision may put a rate just below the edge that it is on.
    index = np.digitize(field * np.float32(1.0005), edges).astype(np.uint8)
    index[np.isnan(field)] = len(colours) + 1
    image = Image.fromarray(np.ascontiguousarray(index[::-1]))
    image.putpalette(bytes.fromhex("".join(c[1:] for c in ("#ffffff", *colours, MISSING))))
    buffer = BytesIO()
    opacity = bytes([0, *[255] * len(colours), 170])
    image.save(buffer, "PNG", transparency=opacity, bits=4, compress_level=6)
    case.pictures[quantity, n] = buffer.getvalue()
    return case.pictures[quantity, n]
