"""Write docs/parity.md: names of BigDL, daskdl and PyTorch, checked against our registry.

Usage: python -m ci.parity [--check]; --check writes nothing, and fails if the page is out of date.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

from ci.pages import write_or_check

ROOT = Path(__file__).resolve().parents[1]
ROWS, PAGE = ROOT / "ci" / "parity.txt", ROOT / "docs" / "parity.md"
HEADER = """\
# Names in BigDL, daskdl and PyTorch

Look up a layer, loss or optim method of BigDL, and find its name in daskdl and in PyTorch. "none"
means that daskdl has no counterpart; the last column then says what to do instead. BigDL's names
are those of its Scala layers and of its Keras-style layers.

`python -m ci.parity` writes this page from `ci/parity.txt` and daskdl's own names.

"""
LAYERS = "layers"
#: Sections that are not of layers.
OTHERS = ("Losses", "Optim methods", "Schedules", "Initialisers", "Metrics")


def ours() -> dict[str, set[str]]:
    """Return daskdl's names by section of `OTHERS`; all other sections share `LAYERS`."""
    from daskdl import metrics, nn, optim
    from daskdl.optim import schedules

    layers = {
        name
        for name, layer in nn.Module.registry.items()
        if layer.__module__.startswith("daskdl.nn.")
        and not layer.__module__.startswith(nn.losses.__name__)
        and not name.startswith("_")
    }
    functions = {name for name, f in vars(nn.init).items() if inspect.isfunction(f)}
    made = {name for name in functions if next(iter(_arguments(nn.init, name)), "") == "parameter"}
    return {
        LAYERS: layers | {"Module"},
        "Losses": set(nn.losses.__all__),
        "Optim methods": {n for n in optim.__all__ if isinstance(getattr(optim, n), type)}
        - {"Elementwise", "Group", "Layout", "Method", "State"},
        "Schedules": set(schedules.__all__),
        "Initialisers": {name for name in made if not name.startswith("_")} - {"fans"},
        "Metrics": set(metrics.__all__) - {"Metric"},
    }


def _arguments(module: object, name: str) -> list[str]:
    return list(inspect.signature(getattr(module, name)).parameters)


def page() -> str:
    """Return the whole page.

    Raises
    ------
    ValueError
        When a row has an unknown name of ours, or neither a name of ours nor a reason.
    """
    known = ours()
    rest = {family: names - {"Module", "Loss", "Schedule"} for family, names in known.items()}
    lines: list[str] = []
    counts = {family: [0, 0] for family in known}
    family = LAYERS
    for line in ROWS.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            family = line[3:] if line[3:] in OTHERS else LAYERS
            lines += ["", line, "", "| BigDL | daskdl | PyTorch |", "|---|---|---|"]
        elif line.strip() and not line.startswith("#"):
            theirs, mine, other = (cell.strip() for cell in line.split("|"))
            if mine != "-" and mine not in known[family]:
                raise ValueError(f"{ROWS}: no {mine!r} among our {family.lower()}: {line}")
            if mine == "-" and len(other) < 10:
                raise ValueError(f"{ROWS}: expected a reason where there is none: {line}")
            counts[family][mine == "-"] += len(theirs.split(","))
            rest[family].discard(mine)
            code = f"`{mine}`" if mine != "-" else "none"
            lines.append(f"| {theirs} | {code} | {other} |")
    more = [
        f"- **{family.capitalize()}**: {', '.join(f'`{name}`' for name in sorted(names))}"
        for family, names in rest.items()
        if names
    ]
    totals = ",\n".join(
        f"- {have} of {have + none} {family[0].lower()}{family[1:]}"
        for family, (have, none) in counts.items()
    )
    total = f"daskdl has counterparts of BigDL's\n\n{totals}."
    return "\n".join([HEADER + total, *lines, "", "## Only in daskdl", "", *more, ""])


def main() -> int:
    """Write the page, or compare with it."""
    return write_or_check({PAGE: page()}, sys.argv, "python -m ci.parity")


if __name__ == "__main__":
    sys.exit(main())
