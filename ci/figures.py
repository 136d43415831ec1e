"""Figures: what benchmarks measured, in docs/figures, with command, date and machine beside."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from daskdl.files import replacing

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "figures"

#: What is measured, by name, and by which command; each takes ``--json FILE`` besides.
COMMANDS = {
    "kernels": "python -m ci.bench.kernels --seconds 0.15",
    "training": "python -m ci.bench.training --seconds 6",
    "training-before": "python -m ci.bench.training --seconds 6",
    "training-compiled": "python -m ci.bench.training --compile --threads 1 --seconds 2 "
    "--no-memory",
    "training-bf16": "python -m ci.bench.training --precision bf16 --compile --threads 1 "
    "--seconds 2 --no-memory",
    "inference": "python -m ci.bench.inference --threads 1,2 --batches 1,16 --seconds 1",
    "examples": "python -m ci.bench.examples",
    "engine": "python -m ci.bench.engine",
    "control": "python -m ci.bench.engine --part control --engines gang forms --workers 256 "
    "--groups 2 --settle 4",
    "scaling-lenet": "daskdl bench scaling --model lenet --workers 2 --repeat 3",
    "scaling-ncf": "daskdl bench scaling --model ncf --workers 2 --seconds 30",
    "scaling-text": "daskdl bench scaling --model text --workers 2 --repeat 3",
    "scaling-convlstm": "daskdl bench scaling --model convlstm --workers 2 --repeat 3",
    "scaling-inception": "daskdl bench scaling --model inception --workers 2 "
    "--total-batch 32 --repeat 2 --seconds 20",
    "scaling-resnet50": "daskdl bench scaling --model resnet50 --workers 2 "
    "--total-batch 16 --repeat 2 --seconds 20",
    "scaling-waiting": "daskdl bench scaling --model inception --simulate 1.5 --megabytes 0.1 "
    "--first 8 --workers 256 --total-batch 1 --seconds 30",
}


def measure(name: str) -> None:
    """Run a benchmark and keep its figure.

    Raises
    ------
    subprocess.CalledProcessError
        When it fails; nothing is kept then.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.json"
        program, *arguments = COMMANDS[name].split()
        beside = str(Path(sys.executable).with_name(program))  # of the same environment
        subprocess.run([beside, *arguments, "--json", str(file)], cwd=ROOT, check=True)
        keep(name, [file])


def keep(name: str, files: list[Path]) -> None:
    """Keep the rows that a benchmark wrote on this machine, in one file or several."""
    figure: dict[str, Any] = {
        "command": COMMANDS[name],
        "date": time.strftime("%Y-%m-%d", time.gmtime(max(f.stat().st_mtime for f in files))),
        "machine": _machine(),
        "rows": [],
    }
    for file in files:
        content = json.loads(file.read_text(encoding="utf-8"))
        if isinstance(content, dict):
            figure |= {key: content[key] for key in ("settings", "megabytes", "machines")}
            content = content["rows"]
        figure["rows"] += content
    FOLDER.mkdir(parents=True, exist_ok=True)
    with replacing(FOLDER / f"{name}.json") as temporary:
        temporary.write_text(_text(figure), encoding="utf-8")


def figure(name: str) -> dict[str, Any] | None:
    """Return a figure; None if it has not been measured."""
    file = FOLDER / f"{name}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None


def published() -> dict[str, Any]:
    """Return the figure of numbers that BigDL's authors have published."""
    found: dict[str, Any] = json.loads((FOLDER / "bigdl.json").read_text(encoding="utf-8"))
    return found


def _text(figure: dict[str, Any]) -> str:
    """Return JSON with a line for each row."""
    head = json.dumps({**figure, "rows": []}, indent=1)
    rows = ",\n  ".join(json.dumps(row) for row in figure["rows"])
    return head.replace('"rows": []', f'"rows": [\n  {rows}\n ]') + "\n"


def _machine() -> dict[str, Any]:
    from daskdl.scaling.machine import machine

    facts = machine()
    for peer in ("torch", "opencv-python-headless"):
        try:
            facts["packages"][peer] = version(peer)
        except PackageNotFoundError:
            continue
    return facts
