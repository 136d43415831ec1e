"""Weather-radar scans in, a trained network and verified rain forecasts out."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what editors and type checkers see of the names below
    from nowcast.cells import track_cells
    from nowcast.ingest.opened import grid
    from nowcast.rain.grid import Grid
    from nowcast.sums import accumulate
    from nowcast.web.client import open

# Loaded when used: `import nowcast` stays quick.
_HOMES = {
    "Grid": "nowcast.rain.grid",
    "accumulate": "nowcast.sums",
    "grid": "nowcast.ingest.opened",
    "open": "nowcast.web.client",
    "track_cells": "nowcast.cells",
}
__all__ = ["Grid", "accumulate", "grid", "open", "track_cells"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'nowcast' has no attribute {name!r}")
