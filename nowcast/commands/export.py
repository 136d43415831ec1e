"""``nowcast export``."""

from __future__ import annotations

from pathlib import Path

from nowcast.commands.talk import say


def run(rain: Path, out: Path, **origin: str) -> None:
    """Write a rain store in mlcast's convention."""
    from nowcast.ingest.mlcast import Origin, write_mlcast

    missing = write_mlcast(rain, out, Origin.of(**origin))
    say(f"{out}: written in mlcast's convention, {missing.size} missing times listed")
