"""Cells as GeoJSON and as CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from daskdl.errors import SettingsError
from nowcast.cells.track import Cell
from nowcast.rain.replacing import beside

NAMES = [field.name for field in fields(Cell) if field.name != "outline"]


def check_out(out: Path) -> None:
    """Refuse a name that says neither GeoJSON nor CSV, and a folder."""
    if out.suffix not in (".geojson", ".json", ".csv") or out.is_dir():
        raise SettingsError(
            f"--out: expected a file that ends in .geojson or .csv, found {out}; rename it"
        )


def write_cells(cells: Sequence[Cell], out: Path) -> None:
    """Write cells to a file: CSV if it ends in .csv, else GeoJSON polygons in degrees."""
    check_out(out)
    text = _csv(cells) if out.suffix == ".csv" else _geojson(cells)
    with beside(out) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _row(cell: Cell) -> dict[str, Any]:
    row = {name: getattr(cell, name) for name in NAMES}
    return {
        name: round(value, 5 if name in ("longitude", "latitude") else 3)
        if isinstance(value, float) else value
        for name, value in row.items()
    }  # fmt: skip


def _csv(cells: Sequence[Cell]) -> str:
    lines = io.StringIO()
    writer = csv.DictWriter(lines, NAMES, lineterminator="\n")
    writer.writeheader()
    for cell in cells:
        writer.writerow(_row(cell) | {"parents": " ".join(map(str, cell.parents))})
    return lines.getvalue()


def _geojson(cells: Sequence[Cell]) -> str:
    features = [
        {
            "type": "Feature",
            "id": cell.id,
            "properties": _row(cell),
            "geometry": {
                "type": "Polygon",
                "coordinates": [ring.round(5).tolist() for ring in cell.outline],
            },
        }
        for cell in cells
    ]
    return json.dumps({"type": "FeatureCollection", "features": features})
