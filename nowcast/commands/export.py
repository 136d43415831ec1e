"""``nowcast export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nowcast.commands.arguments import Rain
from nowcast.commands.talk import say


def export(
    rain: Rain,
    out: Annotated[Path, typer.Option(help="Zarr store to write.")],
    identifier: Annotated[
        str, typer.Option(help="COUNTRY-INSTITUTION-QUANTITY, such as NL-knmi-rain_rate.")
    ],
    created_by: Annotated[str, typer.Option(help="'Name <name@example.org>'.")],
    created_with: Annotated[
        str, typer.Option(help="Repository of the data set's recipe at mlcast-community, @VERSION.")
    ],
    license: Annotated[str, typer.Option(help="SPDX identifier of the data's licence.")],
    version: Annotated[str, typer.Option(help="Version of the data set.")] = "0.1.0",
) -> None:
    """Write a rain store in mlcast's convention, for others to train on."""
    from nowcast.ingest.mlcast import Origin, write_mlcast

    origin = Origin.of(
        identifier=identifier, created_by=created_by, created_with=created_with, license=license,
        version=version,
    )  # fmt: skip
    missing = write_mlcast(rain, out, origin)
    say(f"{out}: written in mlcast's convention, {missing.size} missing times listed")
