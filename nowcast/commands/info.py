"""``nowcast info``: the content of a rain store, a forecast, the folder of a model, or scans."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from daskdl.errors import DataError
from nowcast.commands.arguments import Json
from nowcast.commands.talk import print_json

if TYPE_CHECKING:
    import xarray as xr

#: Fields that shares are counted in at most, evenly spread.
FIELDS = 500
#: Files of a folder of scans that are looked into at most, evenly spread.
SCANS = 200
#: Rain rate from which a cell is wet, mm h-1.
WET = 0.1


def info(
    path: Annotated[
        Path, typer.Argument(help="Rain store, forecast, folder of a model, or of scans.")
    ],
    as_json: Json = False,
) -> None:
    """Show times, gaps, grid, missing and wet shares, settings and origin of the data at a path.

    Shares are of at most 500 fields, spread evenly over the times. Of scans at most 200 files are
    opened, and times come from the names if all state them. Stores and forecasts are checked for
    CF's main rules.
    """
    facts = _facts(path)
    if as_json:
        print_json(facts)
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        typer.echo(f"{name:<{width}}  {value}")


def _facts(path: Path) -> dict[str, Any]:
    from nowcast.forecasters.file import open_fields
    from nowcast.model.model import FILE
    from nowcast.radar.plainfile import is_zarr
    from nowcast.rain.store import damage_named

    if path.is_dir() and not is_zarr(path):
        return _model_facts(path) if (path / FILE).exists() else _scan_facts(path)
    with open_fields(path) as dataset, damage_named(path):
        if "lead_time" not in dataset.dims:
            return {"kind": "rain store"} | _times(dataset) | _field_facts(dataset, "time")
        lead = dataset["lead_time"].values / np.timedelta64(1, "m")
        facts = {
            "kind": "forecast",
            "start": _text(np.datetime64(dataset["forecast_reference_time"].values.item(), "ns")),
            "lead_minutes": [float(minutes) for minutes in lead],
            "thresholds": [float(t) for t in dataset.get("threshold", np.empty(0))],
            "members": dataset.sizes.get("realization", 0),
        }
        return facts | _field_facts(dataset, "lead_time")


def _model_facts(path: Path) -> dict[str, Any]:
    from nowcast.model.folder import load_model

    model = load_model(path)
    return {
        "kind": "model",
        "network": type(model).__name__,
        "frames": model.n_in,
        "lead_minutes": model.lead_minutes,
        **{str(name): value for name, value in model.about.items()},
    }


def _scan_facts(path: Path) -> dict[str, Any]:
    """Return formats, radars, times and gaps of a folder of scans, and its unreadable files."""
    from nowcast.ingest.name_times import name_time
    from nowcast.ingest.rain_map import Failure, try_headers
    from nowcast.ingest.sources import find_files
    from nowcast.radar.header import ENDINGS

    files = find_files([path])
    each = sorted([*files.named, *files.found])
    looked = [
        each[k] for k in np.unique(np.linspace(0, len(each) - 1, min(len(each), SCANS)).astype(int))
    ]
    headers, unread = [], {}
    for one in try_headers(looked):
        if not isinstance(one, Failure):
            headers.append(one)
        elif Path(one.name).suffix.lower() in ENDINGS:
            unread[one.name] = one.reason
    if not headers:
        reasons = "; ".join(list(unread.values())[:1]) or "no file that could be read as one"
        raise DataError(
            f"{path}: expected a model, or a folder of radar scans, found {reasons}; "
            "nowcast ingest --help lists all formats"
        )
    times = [time for header in headers for time in header.times]
    from_names = [name_time(file.name) for file in each]
    if all(time is not None for time in from_names):
        times = [time for time in from_names if time is not None]
    known = np.unique(np.array(times, "datetime64[s]"))
    facts: dict[str, Any] = {
        "kind": "scans", "files": len(each), "looked_into": len(looked),
        "formats": dict(Counter(str(header.format) for header in headers)),
        "radars": dict(Counter(header.station for header in headers)),
        "sites": sorted({str(header.site) for header in headers if header.site}),
        "times": len(known), "first": _text(known[0]), "last": _text(known[-1]),
    }  # fmt: skip
    if grids := sorted({str(header.grid) for header in headers if header.grid}):
        facts["grids"] = grids
    if len(known) > 1:
        steps = np.diff(known) / np.timedelta64(60, "s")
        usual = float(np.median(steps))
        wide = np.flatnonzero(steps > 1.5 * usual) if len(known) >= len(each) / 2 else ()
        facts["step_minutes"] = round(usual, 2)
        facts["gaps"] = [(_text(known[k]), _text(known[k + 1])) for k in wide]
    return facts | {"unreadable": unread}


def cf_faults(dataset: xr.Dataset) -> list[str]:
    """Return sentences on violations of CF-1.11's main rules in a rain store or forecast.

    Checked are Conventions, units and names of variables with dimensions, the grid mapping, and the
    coordinates of each dimension; other rules of the convention are not.
    """
    faults = []
    if not str(dataset.attrs.get("Conventions", "")).startswith("CF-"):
        faults.append(f"Conventions: expected CF-1.11, found {dataset.attrs.get('Conventions')!r}")
    faults += [
        f"global attribute {title}: expected a text, found none"
        for title in ("title", "institution", "source", "history")
        if not dataset.attrs.get(title)
    ]
    for name, variable in dataset.variables.items():
        of_time = variable.dtype.kind in "mM"  # whose units the reader has taken
        flags = {"flag_masks", "flag_values"} & variable.attrs.keys()  # which have no unit
        if variable.ndim and not of_time and not flags and "units" not in variable.attrs:
            faults.append(f"{name}: expected units, found none")
        if not {"standard_name", "long_name"} & variable.attrs.keys() and variable.ndim:
            faults.append(f"{name}: expected a standard_name or a long_name, found none")
        mapping = variable.attrs.get("grid_mapping") or variable.encoding.get("grid_mapping")
        if mapping and "grid_mapping_name" not in dataset.variables.get(mapping, variable).attrs:
            faults.append(f"{name}: expected a grid mapping in {mapping}, found none")
        elif not mapping and {"y", "x"} <= set(variable.dims) and name in dataset.data_vars:
            faults.append(f"{name}: expected a grid_mapping, found none")
    faults += [
        f"dimension {name}: expected a coordinate, found none"
        for name in dataset.dims
        if name not in dataset.coords
    ]
    return faults


def _times(rain: xr.Dataset) -> dict[str, Any]:
    """Return first and last time, step and gaps of a rain store; each gap as (after, before)."""
    from nowcast.rain.store import lead_step

    times = rain["time"].values
    facts: dict[str, Any] = {
        "frames": len(times), "first": _text(times[0]), "last": _text(times[-1])
    }  # fmt: skip
    if len(times) > 1:
        step, steps = lead_step(rain), np.diff(times)
        wide = np.flatnonzero(steps > 1.5 * step)
        facts["step_minutes"] = float(step / np.timedelta64(1, "m"))
        facts["missing_frames"] = int(np.maximum(np.rint(steps / step) - 1, 0).sum())
        facts["gaps"] = [(_text(times[k]), _text(times[k + 1])) for k in wide]
    return facts


def _field_facts(dataset: xr.Dataset, along: str) -> dict[str, Any]:
    """Return grid, shares and attributes of a Dataset with fields of rain along a dimension."""
    from nowcast.rain.grid import Grid

    rain = dataset["rain_rate"]
    count = rain.sizes[along]
    cells = measured = wet = 0
    for index in np.unique(np.linspace(0, count - 1, min(count, FIELDS)).astype(int)):
        field = rain.isel({along: index}).values
        cells += field.size
        measured += int(np.isfinite(field).sum())
        wet += int((field >= WET).sum())
    return {
        "grid": str(Grid.from_dataset(dataset, where="info")),
        "missing_share": round(1 - measured / cells, 4),
        "wet_share": round(wet / max(measured, 1), 4),
        "settings": {k: str(v) for k, v in rain.attrs.items()},
        "cf_faults": cf_faults(dataset),
        "origin": {str(k): str(v) for k, v in dataset.attrs.items()},
    }


def _text(time: np.datetime64) -> str:
    from nowcast.rain.texts import utc_text

    return f"{utc_text(time)}Z"
