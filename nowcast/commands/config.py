"""``nowcast config``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from daskdl.errors import SettingsError
from nowcast.commands.talk import print_json


def config(
    path: Annotated[
        Path | None, typer.Argument(help="File to check; its settings are printed in full.")
    ] = None,
    init: Annotated[
        bool, typer.Option("--init", help="Print a file of all settings with their defaults.")
    ] = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema, for editors.")
    ] = False,
) -> None:
    """Make or check the one YAML file of a watch: sources, grid, method, alerts, retention.

    nowcast watch --config FILE takes it.
    """
    import yaml

    from nowcast.live import office
    from nowcast.live.settings import read_yaml

    if init + schema + (path is not None) != 1:
        raise SettingsError("config: expected one of --init, --schema or a file; give one")
    if init:
        typer.echo(office.initial())
    elif schema:
        print_json(office.schema())
    elif path is not None:
        settings = office.plain(read_yaml(path, office.Office))
        typer.echo(yaml.safe_dump(settings, sort_keys=False), nl=False)
