"""``nowcast train``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from nowcast.commands.arguments import Calibration, Cluster, Json, Workers, lead_minutes
from nowcast.commands.talk import print_json, progress_bar, say


def train(
    rain: Annotated[
        list[Path], typer.Argument(help="Rain stores that 'nowcast ingest' wrote; one or more.")
    ],
    out: Annotated[Path, typer.Option(help="Folder to write the model to.")],
    validate: Annotated[
        list[Path] | None,
        typer.Option(help="Store to validate on; may be repeated. By default parts of the others."),
    ] = None,
    test: Annotated[
        list[Path] | None,
        typer.Option(help="Store to test on; may be repeated. By default parts of the others."),
    ] = None,
    init: Annotated[
        Path | None, typer.Option(help="Folder of a model to start from instead of chance.")
    ] = None,
    lead: Annotated[str | None, typer.Option(help="How far ahead to forecast, e.g. 60min.")] = None,
    epochs: Annotated[float | None, typer.Option(help="Passes over the training windows.")] = None,
    config: Annotated[Path | None, typer.Option(help="Settings in YAML.")] = None,
    assign: Annotated[
        list[str] | None, typer.Option("--set", help="A setting as NAME=VALUE; may be repeated.")
    ] = None,
    cluster: Cluster = "local",
    workers: Workers = None,
    calibration: Calibration = None,
    progress: Annotated[bool, typer.Option(help="Show progress.")] = True,
    as_json: Json = False,
) -> None:
    """Train a network on rain stores: one that corrects sprog's probabilities.

    Without --validate and --test, stores are split by their rain into parts to train, to validate
    and to test on. --set network=rainnet, convlstm or trajgru chooses another network, and
    --set frame=fixed one that makes images of rain from images, without motion. It ends with a
    comparison with sprog on the test part, which decides what --method auto takes. The same command
    goes on where an interrupted one stopped.
    """
    from daskdl.cluster import connect
    from nowcast.lagrangian.exceedance import SHIPPED
    from nowcast.model.calibration import read_table
    from nowcast.model.settings import check_frame, parse
    from nowcast.model.train import train
    from nowcast.rain.store import open_rain
    from nowcast.verification.gate import judge

    settings = parse(config, assign or [], lead_minutes=lead_minutes(lead), epochs=epochs)
    table = SHIPPED if calibration is None else read_table(calibration)
    # Refuse wrong settings and stores before workers are started.
    if init is None:
        check_frame(settings)
    for path in (*rain, *(validate or ()), *(test or ())):
        open_rain(path)
    try:
        with connect(cluster, workers=workers) as client:
            model = train(
                rain, out, settings, client, progress, say,
                validate=validate or (), test=test or (), init=init, table=table,
            )  # fmt: skip
    except (KeyboardInterrupt, SystemExit):  # Ctrl-C, SIGTERM
        say("the same command goes on where this one stops")
        raise
    with progress_bar("compare with sprog on what it has not seen") as advance:
        verdict = judge(model, test or rain, advance if progress else None)
    model.about["gate"] = verdict.to_dict()
    model.save(out)
    say(f"model written to {out}: {model.n_in} frames in, {model.lead_minutes:g} min ahead")
    for sentence in verdict.findings:
        say(sentence)
    taken = "it" if verdict.passed else "sprog"
    if verdict.passed and verdict.simulated:
        taken = "it for simulated rain, and sprog for any other"
    say(f"The network is {verdict.sentence}; --method auto takes {taken}.")
    if as_json:
        result: dict[str, Any] = {"model": str(out), **model.about, "split": model.split.to_dict()}
        print_json(result)
