"""``nowcast train``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nowcast.commands.arguments import lead_minutes
from nowcast.commands.talk import print_json, progress_bar, say


def run(
    rain: Sequence[Path],
    out: Path,
    *,
    validate: Sequence[Path],
    test: Sequence[Path],
    init: Path | None,
    lead: str | None,
    epochs: float | None,
    config: Path | None,
    assignments: list[str],
    cluster: str,
    workers: int | None,
    progress: bool,
    as_json: bool,
) -> None:
    """Train a model, see :func:`nowcast.model.train.train`, and compare it with S-PROG."""
    from daskdl.cluster import connect
    from nowcast.model.settings import parse
    from nowcast.model.train import train
    from nowcast.rain.store import open_rain
    from nowcast.verification.gate import judge

    settings = parse(config, assignments, lead_minutes=lead_minutes(lead), epochs=epochs)
    for path in (*rain, *validate, *test):
        open_rain(path)  # refuse a wrong store before workers are started
    try:
        with connect(cluster, workers=workers) as client:
            model = train(
                rain, out, settings, client, progress, say,
                validate=validate, test=test, init=init,
            )  # fmt: skip
    except KeyboardInterrupt:
        say("the same command goes on where this one stops")
        raise
    with progress_bar("compare with sprog on what it has not seen") as advance:
        verdict = judge(model, test or rain, advance if progress else None)
    model.about["gate"] = verdict.to_dict()
    model.save(out)
    say(f"model written to {out}: {model.n_in} frames in, {model.n_out} out")
    for sentence in verdict.findings:
        say(sentence)
    say(
        f"The network is {verdict.sentence}; --method auto takes "
        f"{'it' if verdict.passed else 'sprog'}."
    )
    if as_json:
        result: dict[str, Any] = {"model": str(out), **model.about, "split": model.split.to_dict()}
        print_json(result)
