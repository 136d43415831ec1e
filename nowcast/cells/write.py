"""Cells as GeoJSON, CSV and GeoParquet; GeoJSON is read again."""

from __future__ import annotations

import csv
import io
import json
import struct
from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import MissingExtraError, SettingsError
from daskdl.files import replacing
from nowcast.cells.motion import track_ahead
from nowcast.cells.track import Cell
from nowcast.rain.store import expecting

NAMES = [field.name for field in fields(Cell) if field.name != "outline"]


ENDINGS = (".geojson", ".json", ".csv", ".parquet")


def check_out(out: Path) -> None:
    """Refuse a name that does not say GeoJSON, CSV or Parquet, and a folder."""
    if out.suffix not in ENDINGS or out.is_dir():
        raise SettingsError(
            f"--out: expected a file that ends in .geojson, .csv or .parquet, found {out}; "
            "rename it"
        )
    if out.suffix == ".parquet" and find_spec("pyarrow") is None:
        raise MissingExtraError(f"{out}: Parquet needs pyarrow; pip install 'daskdl[parquet]'")


def write_cells(cells: Sequence[Cell], out: Path) -> None:
    """Write cells to a file: CSV (.csv), GeoParquet (.parquet), else GeoJSON, in degrees."""
    check_out(out)
    with replacing(out) as temporary:
        if out.suffix == ".parquet":
            _write_parquet(cells, temporary)
        else:
            text = _csv(cells) if out.suffix == ".csv" else _geojson(cells)
            temporary.write_text(text, encoding="utf-8")


def _write_parquet(cells: Sequence[Cell], path: Path) -> None:
    """Write a table with the polygons as WKB, as GeoParquet 1.1 wants them."""
    import pyarrow as pa
    from pyarrow import parquet

    kinds = {"id": pa.int64(), "track": pa.int64(), "parents": pa.list_(pa.int64())}
    schema = pa.schema(
        [(name, kinds.get(name, pa.float64())) for name in NAMES if name != "time"]
        + [("time", pa.timestamp("s", tz="UTC")), ("geometry", pa.binary())]
    )
    rows = [
        {name: getattr(cell, name) for name in NAMES}
        | {
            "time": datetime.fromisoformat(cell.time),
            "parents": list(cell.parents),
            "geometry": _wkb(cell.outline),
        }
        for cell in cells
    ]
    geometry = {"encoding": "WKB", "geometry_types": ["Polygon"]}
    metadata = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": geometry}}
    table = pa.Table.from_pylist(rows, schema.with_metadata({"geo": json.dumps(metadata)}))
    parquet.write_table(table, path)


def _wkb(rings: Sequence[NDArray[np.float64]]) -> bytes:
    """Return a polygon as well-known binary (OGC 06-103r4), little-endian."""
    parts = [struct.pack("<BII", 1, 3, len(rings))]
    for ring in rings:
        parts += [struct.pack("<I", len(ring)), ring.astype("<f8").tobytes()]
    return b"".join(parts)


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


def _ahead(cell: Cell) -> list[dict[str, float]]:
    """Return the points of the track ahead, rounded."""
    return [
        {name: round(value, 5) for name, value in point._asdict().items()}
        for point in track_ahead(cell)
    ]


def _geojson(cells: Sequence[Cell]) -> str:
    features = [
        {
            "type": "Feature",
            "id": cell.id,
            "properties": _row(cell) | {"ahead": _ahead(cell)},
            "geometry": {
                "type": "Polygon",
                "coordinates": [ring.round(5).tolist() for ring in cell.outline],
            },
        }
        for cell in cells
    ]
    return json.dumps({"type": "FeatureCollection", "features": features})


def read_cells(path: Path) -> list[Cell]:
    """Return the cells of a GeoJSON file that `write_cells` wrote."""
    with expecting(path, "cells as GeoJSON, as nowcast cells writes them", "make the file anew"):
        features = json.loads(path.read_text(encoding="utf-8"))["features"]
        return [
            Cell(
                **{name: feature["properties"][name] for name in NAMES if name != "parents"},
                parents=tuple(feature["properties"]["parents"]),
                outline=tuple(np.array(ring) for ring in feature["geometry"]["coordinates"]),
            )
            for feature in features
        ]
