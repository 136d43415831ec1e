"""Words for people go to standard error, data to standard output."""

from __future__ import annotations

import json
from typing import Any

import typer


def say(sentence: str) -> None:
    """Print a line for people."""
    typer.echo(sentence, err=True)


def print_json(result: Any) -> None:
    """Print data for machines."""
    typer.echo(json.dumps(result, indent=1))
