"""The command line ``daskdl``: machines, model files, live streams, and how fits scale."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from daskdl.console import application, run

app = application("daskdl", "Deep learning on Dask clusters of CPUs.")
bench = typer.Typer(help="Measure on a cluster of your own.", no_args_is_help=True)
app.add_typer(bench, name="bench")
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
PLACES = (
    '"local", an address such as tcp://host:8786, a scheduler file (.json), a job queue or a '
    "gateway (.yaml)."
)
Where = typer.Option(help=f"Where: {PLACES}")
Workers = Annotated[int | None, typer.Option(help="Workers to start.", min=1)]


@app.command()
def doctor(
    cluster: Annotated[str | None, typer.Option(help=f"A cluster to ask as well: {PLACES}")] = None,
    workers: Annotated[
        int | None, typer.Option(help="Workers to start, and to wait for.", min=1)
    ] = None,
    as_json: Json = False,
) -> None:
    """Tell versions, BLAS libraries, cores, memory and where compiled kernels are kept."""
    from daskdl.cluster.doctor import diagnosis, diagnosis_of

    if cluster is None:
        _print(diagnosis(), as_json)
        return
    from daskdl.cluster import connect
    from daskdl.cluster.connection import PATIENCE, wait_for
    from daskdl.cluster.doctor import WORKERS_WITHIN

    queued = cluster.endswith((".yaml", ".yml"))
    with connect(cluster, workers=workers) as client:
        wait_for(client, workers or 1, "doctor", PATIENCE if queued else WORKERS_WITHIN)
        facts = diagnosis_of(client)
    if not as_json:
        same = "none: all versions are the client's"
        facts["differences"] = dict(enumerate(facts["differences"], 1)) or same
    _print(facts, as_json)


@app.command()
def show(
    model: Annotated[
        Path,
        typer.Argument(
            help="A model file of daskdl (.safetensors), ONNX, Caffe, TensorFlow, Keras or Torch7, "
            "weights of PyTorch (.pt), or a folder of `nowcast train`."
        ),
    ],
    as_json: Json = False,
) -> None:
    """Tell what a model file holds: its modules, its number of parameters and its metadata."""
    from daskdl.interop.description import describe

    facts = describe(model)
    if as_json:
        _print(facts, as_json)
        return
    modules, shapes = facts.pop("modules"), facts.pop("shapes")
    _print(facts if facts["metadata"] else {**facts, "metadata": "none"}, as_json)
    if modules:
        typer.echo(f"modules\n{_indented(modules)}")
    else:
        typer.echo("arrays\n" + "\n".join(f"  {name}: {s}" for name, s in shapes.items()))


@app.command()
def stream(
    context: typer.Context,
    brokers: Annotated[
        str | None, typer.Option(help="Kafka brokers, host:port, several with commas.")
    ] = None,
    topics: Annotated[
        str | None, typer.Option("--in", help="Topic of the messages, several with commas.")
    ] = None,
    out: Annotated[str | None, typer.Option(help="Topic of the answers.")] = None,
    model: Annotated[
        str | None, typer.Option(help="A model file, *.safetensors; a path or a URL.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="YAML with any of these options, and kafka, routes and unsure."),
    ] = None,
    group: Annotated[str | None, typer.Option(help="Whose offsets are committed.")] = None,
    cluster: Annotated[str | None, Where] = None,
    workers: Workers = None,
    exactly_once: Annotated[
        bool | None,
        typer.Option(
            "--exactly-once",
            help="Commit answers and offsets in one transaction.",
            show_default=False,
        ),
    ] = None,
    dead_letter: Annotated[
        str | None,
        typer.Option(help="Topic of messages that cannot be answered. [default: OUT.dead-letter]"),
    ] = None,
    schema: Annotated[
        str | None,
        typer.Option(help="text, numbers, json:FIELD or MODULE:FUNCTION. By default the model's."),
    ] = None,
    echo: Annotated[
        bool | None, typer.Option("--echo", help="Put the message into its answer.")
    ] = None,
    start: Annotated[
        str | None, typer.Option(help="Where a new group begins: earliest or latest.")
    ] = None,
    control: Annotated[
        str | None, typer.Option(help='Topic of orders such as {"model": "b.safetensors"}.')
    ] = None,
    watch: Annotated[
        bool | None, typer.Option("--watch", help="Use the model file again when it is replaced.")
    ] = None,
    create_topics: Annotated[
        bool | None, typer.Option("--create-topics", help="Make topics of answers if need be.")
    ] = None,
    kafka: Annotated[
        list[str] | None,
        typer.Option(help="A setting of librdkafka, NAME=VALUE; secrets belong into --config."),
    ] = None,
    batch: Annotated[int | None, typer.Option(help="Most messages of a batch.", min=1)] = None,
    until_end: Annotated[
        bool | None, typer.Option("--until-end", help="Stop when all has been read.")
    ] = None,
    seconds: Annotated[float | None, typer.Option(help="Stop after so many.", min=0)] = None,
    progress: Annotated[bool, typer.Option(help="Show the progress.")] = True,
) -> None:
    """Answer the messages of Kafka topics with a model, until SIGTERM or Ctrl-C.

    What is under way is then finished and committed, and JSON with counts, latencies and what went
    wrong is printed.
    """
    from daskdl.errors import SettingsError
    from daskdl.stream.service.command import run
    from daskdl.stream.service.configuration import configured

    if wrong := [pair for pair in kafka or () if "=" not in pair]:
        name = wrong[0].split()[0] if wrong[0].split() else "nothing"
        raise SettingsError(f"--kafka: expected NAME=VALUE, found {name}; write both")
    settings = dict(pair.split("=", 1) for pair in kafka or ())
    options = {n: v for n, v in context.params.items() if n not in ("config", "progress")}
    _print(run(configured(config, options | {"kafka": settings}), progress), as_json=True)


@app.command()
def embed(
    source: Annotated[
        str,
        typer.Argument(help="Parquet, or lines of JSON: a file, a folder, a pattern or a URL."),
    ],
    model: Annotated[
        str,
        typer.Option(
            help="A folder of Hugging Face, sentence-transformers or model2vec, a URL of one, or "
            "hf://organisation/name."
        ),
    ],
    out: Annotated[str, typer.Option(help="A folder for Parquet files; a path or a URL.")],
    column: Annotated[str, typer.Option(help="Of the texts.")] = "text",
    keep: Annotated[
        str, typer.Option(help="Columns to copy as well, such as an id; several with commas.")
    ] = "",
    task: Annotated[
        str, typer.Option(help="embed for vectors, classify for the folder's own classes.")
    ] = "embed",
    precision: Annotated[str, typer.Option(help="float32 or bf16.")] = "float32",
    numbers: Annotated[
        str, typer.Option(help="Of vectors: float32, float16, int8 or binary (packed signs).")
    ] = "float32",
    prompt: Annotated[
        str | None, typer.Option(help="Name of the folder's prompt to stand before each text.")
    ] = None,
    long: Annotated[
        str, typer.Option(help="Of long texts: cut, or mean or max of their windows.")
    ] = "cut",
    overlap: Annotated[int, typer.Option(help="Tokens that two windows share.")] = 0,
    cluster: Annotated[str, Where] = "local",
    workers: Workers = None,
    progress: Annotated[bool, typer.Option(help="Tell how far it is.")] = True,
) -> None:
    """Write the vectors of texts in files, each partition once; the same command goes on."""
    from daskdl.cluster import connect
    from daskdl.text import load
    from daskdl.text.files import embed as embedded

    settings: Any = {"task": task, "precision": precision, "prompt": prompt}
    network = load(model, long=long, overlap=overlap, **settings)
    with connect(cluster, workers=workers):
        written = embedded(
            network, source, out, column, [k for k in keep.split(",") if k], progress, numbers
        )
    typer.echo(
        f"{written.samples} texts in {len(written.written)} partitions written to {out}, which has "
        f"{len(written.parts)}"
    )


@bench.command()
def scaling(
    model: Annotated[
        str,
        typer.Option(
            help="What to train: lenet, ncf, text, convlstm, inception, resnet18, resnet34, "
            "resnet50, resnet101 or resnet152."
        ),
    ] = "resnet50",
    cluster: Annotated[str, Where] = "local",
    workers: Annotated[
        int | None,
        typer.Option(help="Most workers: 1, 2, 4, ... and this. By default all there are.", min=1),
    ] = None,
    first: Annotated[int, typer.Option(help="Fewest workers.", min=1)] = 1,
    threads: Annotated[int, typer.Option(help='Threads of a worker of "local".', min=1)] = 1,
    batch_size: Annotated[
        int | None, typer.Option(help="Samples of each worker, for weak scaling.", min=1)
    ] = None,
    total_batch: Annotated[
        int | None,
        typer.Option(
            help="Samples of all workers together, for strong scaling. By default as many as "
            "the fewest workers have.",
            min=1,
        ),
    ] = None,
    seconds: Annotated[float, typer.Option(help="How long a run lasts, about.", min=0)] = 10.0,
    repeat: Annotated[int, typer.Option(help="Runs of the same; the quickest counts.", min=1)] = 1,
    engine: Annotated[str, typer.Option(help="auto, gang or graph.")] = "auto",
    wire: Annotated[str, typer.Option(help="float32 or bfloat16.")] = "float32",
    simulate: Annotated[
        float | None,
        typer.Option(
            help="Wait so many seconds an iteration in place of computing, and exchange gradients "
            'for real. With "local" hundreds of workers find room on one machine.',
            min=0,
        ),
    ] = None,
    megabytes: Annotated[
        float | None,
        typer.Option(help="Of the gradient with --simulate; by default the model's.", min=0),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="File for settings, machines and rows.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="File for a picture, such as a .png.")] = None,
    progress: Annotated[bool, typer.Option(help="Show progress.")] = True,
) -> None:
    """Tell how long an iteration takes on 1, 2, 4, ... workers, and where the time goes.

    Trains a model on synthetic samples. Of each iteration: the milliseconds of the mean worker's
    data, forward and backward, of reduction, update and broadcast, of scheduling (driver,
    scheduler and messages between groups of iterations), and idle, which is waiting for others.
    Weak efficiency: each worker has as many samples as one has alone. Strong: all have as
    many together.
    """
    from daskdl.scaling.command import Settings, run

    settings = Settings(
        model, cluster, workers, first, threads, batch_size, total_batch, seconds, repeat, engine,
        wire, simulate, megabytes,
    )  # fmt: skip
    run(settings, json_file, plot, progress)


def _print(facts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
        return
    typer.echo("\n".join(_lines(facts)))


def _lines(facts: dict[Any, Any]) -> list[str]:
    lines = []
    for name, value in facts.items():
        if isinstance(value, dict):
            lines += [f"{name}", _indented("\n".join(_lines(value) or ["nothing"]))]
        else:
            lines.append(f"{name}: {value}")
    return lines


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def main() -> int:
    """Run the command line; the exit code is the result."""
    return run(app)


if __name__ == "__main__":
    raise SystemExit(main())
