"""The command line ``daskdl``: what this machine offers, and what a model file holds."""

from __future__ import annotations

import json
import os
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

import typer

from daskdl.console import application, run

app = application("daskdl", "Deep learning on Dask clusters of CPUs.")
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]

#: Packages whose versions decide speed or results.
PACKAGES = ("daskdl", "numpy", "scipy", "numba", "dask", "distributed", "xarray", "zarr")


@app.command()
def doctor(as_json: Json = False) -> None:
    """Tell versions, BLAS libraries, cores, memory and where compiled kernels are kept."""
    _print(diagnosis(), as_json)


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
        "parameters": int(module.flat.size),
        "megabytes": round(model.stat().st_size / 1e6, 3),
        "metadata": metadata,
    }
    if as_json:
        _print({**facts, "modules": repr(module), "shapes": parameters}, as_json)
        return
    _print(facts, as_json)
    typer.echo(f"modules\n{_indented(repr(module))}")


def diagnosis() -> dict[str, Any]:
    """Return what decides speed and results on this machine, as plain data."""
    import platform

    import threadpoolctl
    from distributed.system import MEMORY_LIMIT

    from daskdl.kernels.blas import gemm_scratch
    from daskdl.kernels.threads import available_cores, threads

    libraries = {
        Path(library["filepath"]).name: (
            f"{library['internal_api']} {library['version']}, {library['num_threads']} threads"
        )
        for library in threadpoolctl.threadpool_info()
    }
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in PACKAGES},
        "libraries": libraries,
        "cores": available_cores(),
        "thread budget": threads(),
        "memory limit (GB)": round(MEMORY_LIMIT / 1e9, 1),
        "kernel cache": _folder(Path(gemm_scratch.stats.cache_path)),
        "environment": {k: v for k, v in sorted(os.environ.items()) if _decides_speed(k)},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _decides_speed(variable: str) -> bool:
    return variable.endswith("_NUM_THREADS") or variable.startswith(("DASK_", "NUMBA_"))


def _folder(path: Path) -> dict[str, Any]:
    existing = next(p for p in (path, *path.parents) if p.exists())
    return {"folder": str(path), "writable": os.access(existing, os.W_OK)}


def _print(facts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
        return
    for name, value in facts.items():
        if isinstance(value, dict):
            lines = [f"{key}: {item}" for key, item in value.items()] or ["nothing"]
            typer.echo(f"{name}\n{_indented(chr(10).join(lines))}")
        else:
            typer.echo(f"{name}: {value}")


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def main() -> int:
    """Run the command line; the exit code is the result."""
    return run(app)
