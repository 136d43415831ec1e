"""Options and arguments of commands, words there and numbers in the program."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from daskdl.errors import SettingsError

if TYPE_CHECKING:
    from distributed import Client

Cluster = Annotated[
    str,
    typer.Option(
        help="Where to compute: 'local', a scheduler's address, its scheduler file (.json), or a "
        "job queue described in YAML."
    ),
]
MaybeCluster = Annotated[
    str | None,
    typer.Option(
        "--cluster", help="Compute on a cluster, as for train; without it in this process."
    ),
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Workers to start; by default one a core.")
]
Rain = Annotated[Path, typer.Argument(help="Rain store that 'nowcast ingest' wrote.")]
RainOrForecast = Annotated[
    Path, typer.Argument(help="Rain store or forecast that nowcast wrote, zarr or netCDF.")
]
Model = Annotated[Path | None, typer.Option(help="Folder of a model that 'nowcast train' wrote.")]
Members = Annotated[
    int, typer.Option(min=0, help="Members of an ensemble, of methods that give them.")
]
Seed = Annotated[int, typer.Option(min=0, help="Decides all that is random.")]
Calibration = Annotated[
    Path | None,
    typer.Option(
        help="File that 'nowcast calibrate' wrote, for the probabilities of sprog, steps and auto."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


_MINUTES = {"": 1.0, "min": 1.0, "minutes": 1.0, "m": 1.0, "h": 60.0, "hour": 60.0, "hours": 60.0}


def of_finite(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that refuses nan and inf among its numbers, which no option can mean."""

    @functools.wraps(command)
    def checked(**options: Any) -> None:
        for name, value in options.items():
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, float) and not math.isfinite(one):
                    option = name.replace("_", "-")
                    raise SettingsError(f"--{option}: expected a finite number, found {one}")
        command(**options)

    return checked


def connected(cluster: str | None, workers: int | None) -> AbstractContextManager[Client | None]:
    """Connect to the cluster that two options name; without either, start none."""
    if cluster is None and workers is None:
        return nullcontext()
    from daskdl.cluster import connect

    return connect(cluster or "local", workers=workers)


def lead_minutes(text: str | None) -> float | None:
    """Return the minutes of a lead time such as ``60min``, ``1.5h`` or ``90``.

    Raises SettingsError if it is no time, or not above 0.

    Examples
    --------
    >>> lead_minutes("1.5h")
    90.0
    """
    if text is None:
        return None
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", text.lower())
    if not match or match[2] not in _MINUTES or float(match[1]) <= 0:
        raise SettingsError(
            f"--lead: expected a time such as 60min or 1h, found {text!r}; give a number and a unit"
        )
    return float(match[1]) * _MINUTES[match[2]]


def numbers(option: str, text: str) -> tuple[float, ...]:
    """Return the numbers of a comma-separated list, each once, increasing.

    Raises SettingsError if one is no number or not finite.

    Examples
    --------
    >>> numbers("--thresholds", "1, 0.1")
    (0.1, 1.0)
    """
    try:
        values = sorted({float(part) for part in text.split(",")})
    except ValueError:
        values = []
    if not values or not all(map(math.isfinite, values)):
        raise SettingsError(
            f"{option}: expected numbers with commas between them, found {text!r}; write 0.1,1,5"
        )
    return tuple(values)
