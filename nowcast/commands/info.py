"""``nowcast info``: what is in a rain store, a forecast or the folder of a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from nowcast.commands.arguments import Json
from nowcast.commands.talk import print_json

if TYPE_CHECKING:
    import xarray as xr

#: Fields that shares are counted in at most, evenly spread.
FIELDS = 500
#: Rain rate from which a cell is wet, mm h-1.
WET = 0.1


def info(
    path: Annotated[Path, typer.Argument(help="Rain store, forecast, or folder of a model.")],
    as_json: Json = False,
) -> None:
    """Tell times, gaps, grid, missing and wet shares, settings and origin of what lies at a path.

    Shares are those of at most 500 fields, spread evenly over the times.
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
    from nowcast.radar.plainfile import is_zarr
    from nowcast.rain.store import damage_named

    if path.is_dir() and not is_zarr(path):
        return _model_facts(path)
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
        "origin": {str(k): str(v) for k, v in dataset.attrs.items()},
    }


def _text(time: np.datetime64) -> str:
    from nowcast.rain.utc import utc_text

    return f"{utc_text(time)}Z"
