"""The command line ``daskdl``: what this machine offers, and what a model file holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from daskdl.console import application, run
from daskdl.errors import ClusterError

app = application("daskdl", "Deep learning on Dask clusters of CPUs.")
#: Seconds to wait for workers.
PATIENCE = 300
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]


@app.command()
def doctor(
    cluster: Annotated[
        str | None,
        typer.Option(
            help='A cluster to ask as well: "local", an address such as tcp://host:8786, a '
            "scheduler file (.json), a job queue or a gateway (.yaml).",
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Workers to start, and to wait for.", min=1)
    ] = None,
    as_json: Json = False,
) -> None:
    """Tell versions, BLAS libraries, cores, memory and where compiled kernels are kept."""
    from daskdl.doctor import diagnosis, diagnosis_of

    if cluster is None:
        _print(diagnosis(), as_json)
        return
    from daskdl.cluster import connect

    with connect(cluster, workers=workers) as client:
        _wait_for(client, workers or 1)
        facts = diagnosis_of(client)
    if not as_json:
        same = "none: all versions are the client's"
        facts["differences"] = dict(enumerate(facts["differences"], 1)) or same
    _print(facts, as_json)


def _wait_for(client: Any, workers: int) -> None:
    try:
        client.wait_for_workers(workers, timeout=PATIENCE)
    except TimeoutError as error:
        raise ClusterError(
            f"doctor: expected {workers} workers within {PATIENCE} s, found "
            f"{len(client.nthreads())}; see whether the jobs have started"
        ) from error


@app.command()
def show(
    model: Annotated[Path, typer.Argument(help="A model file, *.safetensors.")],
    as_json: Json = False,
) -> None:
    """Tell what a model file holds: its modules, its number of parameters and its metadata."""
    import daskdl.models  # noqa: F401  (makes their names known to the model file)
    from daskdl import nn

    module, metadata = nn.load(model), nn.read_metadata(model)
    parameters = {name: list(p.shape) for name, p in module.named_parameters()}
    facts: dict[str, Any] = {
        "file": str(model),
        "parameters": sum(p.data.size for p in module.parameters()),
        "megabytes": round(model.stat().st_size / 1e6, 3),
        "metadata": metadata,
    }
    if as_json:
        _print({**facts, "modules": repr(module), "shapes": parameters}, as_json)
        return
    _print(facts, as_json)
    typer.echo(f"modules\n{_indented(repr(module))}")


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
