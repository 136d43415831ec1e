"""``nowcast train``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nowcast.commands.arguments import lead_minutes
from nowcast.commands.talk import print_json, say


def run(
    rain: Path,
    out: Path,
    *,
    lead: str | None,
    epochs: float | None,
    config: Path | None,
    assignments: list[str],
    cluster: str,
    workers: int | None,
    progress: bool,
    as_json: bool,
) -> None:
    """Train a model; see :func:`nowcast.model.train.train`."""
    from daskdl.cluster import connect
    from nowcast.model.settings import parse
    from nowcast.model.train import train
    from nowcast.rain.store import open_rain

    settings = parse(config, assignments, lead_minutes=lead_minutes(lead), epochs=epochs)
    open_rain(rain)  # refuse a wrong store before workers are started
    try:
        with connect(cluster, workers=workers) as client:
            model = train(rain, out, settings, client, progress, say)
    except KeyboardInterrupt:
        say("the same command goes on where this one stops")
        raise
    say(f"model written to {out}: {model.n_in} frames in, {model.n_out} out")
    if as_json:
        result: dict[str, Any] = {"model": str(out), **model.about, "split": model.split.to_dict()}
        print_json(result)
