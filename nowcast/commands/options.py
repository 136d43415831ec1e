"""Options and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Cluster = Annotated[
    str,
    typer.Option(
        help="Where to compute: 'local', a scheduler's address, its scheduler file (.json), or a "
        "job queue described in YAML."
    ),
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Workers to start; by default one a core.")
]
Rain = Annotated[Path, typer.Argument(help="Rain store that 'nowcast ingest' wrote.")]
Calibration = Annotated[
    Path | None,
    typer.Option(
        help="File that 'nowcast calibrate' wrote, for the probabilities of sprog, steps and auto."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
