"""Write the tables of docs/measurements/performance.md from docs/figures.

Usage: python -m ci.performance [--check]; --check writes nothing, and fails if the page is out of
date. ``measure NAME...`` runs benchmarks and saves their figures, ``keep NAME FILE...`` saves rows
that a benchmark has written on this machine; then the page is written.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import textwrap
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ci.pages import write_or_check
from ci.performance import tables
from ci.performance.tables import COMBINED, TABLES
from daskdl.files import replacing

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "measurements" / "performance.md"
MARK = re.compile(r"(<!-- table (\S+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


#: Command of each figure by name; each takes ``--json FILE`` too.
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
    """Run a benchmark and save its figure.

    Raises
    ------
    subprocess.CalledProcessError
        When the benchmark fails; nothing is saved then.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.json"
        program, *arguments = COMMANDS[name].split()
        executable = str(Path(sys.executable).with_name(program))  # of the same environment
        subprocess.run([executable, *arguments, "--json", str(file)], cwd=ROOT, check=True)
        keep(name, [file])


def keep(name: str, files: list[Path]) -> None:
    """Save the rows that a benchmark wrote on this machine, in one file or several."""
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
    folder = tables.FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / f"{name}.json") as temporary:
        temporary.write_text(_text(figure), encoding="utf-8")


def page(text: str) -> str:
    """Return the page with new tables between its marks.

    Raises
    ------
    ValueError
        When a mark names no figure, or a figure has no mark.
    """
    named = {match[2] for match in MARK.finditer(text)}
    missing = sorted({*COMMANDS, *COMBINED} - named)
    if missing:
        raise ValueError(f"{PAGE.name}: expected <!-- table {missing[0]} -->, found none")
    return MARK.sub(lambda match: f"{match[1]}{section(match[2])}{match[4]}", text)


def section(name: str) -> str:
    """Return a table below the command, date and machine of its figure."""
    if name in COMBINED:
        return "\n" + "\n".join(COMBINED[name]()) + "\n"
    if name not in COMMANDS:
        known = ", ".join([*COMMANDS, *COMBINED])
        raise ValueError(f"{PAGE.name}: expected a table of {known}, found {name!r}")
    command, figure = COMMANDS[name], tables.figure(name)
    if figure is None:
        return f"\n`{command}`: not measured yet\n"
    lines = TABLES[name.partition("-")[0]](figure)
    head = f"`{command}`, {figure['date']}, {described(figure['machine'])}"
    return "\n".join(["", *textwrap.wrap(head, 140, break_on_hyphens=False), "", *lines, ""])


def described(machine: dict[str, Any]) -> str:
    """Return the sentence about a figure's machine and versions."""
    packages = machine["packages"]
    versions = ", ".join(
        f"{name} {packages[name]}"
        for name in ("daskdl", "numpy", "numba", "distributed", "torch")
        if name in packages
    )
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory (GB)']} GB, "
        f"Python {machine['python']}, {versions}, {' and '.join(machine['libraries'])}"
    )


def _text(figure: dict[str, Any]) -> str:
    """Return the JSON of a figure, with a line for each row."""
    head = json.dumps({**figure, "rows": []}, indent=1)
    rows = ",\n  ".join(json.dumps(row) for row in figure["rows"])
    return head.replace('"rows": []', f'"rows": [\n  {rows}\n ]') + "\n"


def _machine() -> dict[str, Any]:
    from daskdl.scaling.command import machine

    facts = machine()
    for peer in ("torch", "opencv-python-headless"):
        try:
            facts["packages"][peer] = version(peer)
        except PackageNotFoundError:
            continue
    return facts


def main(arguments: list[str]) -> int:
    """Measure or save figures, then write the page or compare with it."""
    known = ", ".join(COMMANDS)
    if arguments[:1] in (["measure"], ["keep"]):
        names = arguments[1:] if arguments[0] == "measure" else arguments[1:2]
        if not names or not {*names} <= {*COMMANDS}:
            print(f"{arguments[0]}: expected some of {known}, found {names}", file=sys.stderr)
            return 2
        if arguments[0] == "keep" and not arguments[2:]:
            print(f"keep {names[0]}: expected files after the name, found none", file=sys.stderr)
            return 2
        if arguments[0] == "keep":
            keep(names[0], [Path(file) for file in arguments[2:]])
        else:
            for name in names:
                measure(name)
    text = page(PAGE.read_text(encoding="utf-8"))
    return write_or_check({PAGE: text}, arguments, "python -m ci.performance")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
