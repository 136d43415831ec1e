"""Write the tables of docs/measurements/performance.md from docs/figures.

Usage: python -m ci.performance [--check]; with --check nothing is written, and a page that is not
what it would be fails. ``measure NAME...`` runs benchmarks and keeps what they find, ``keep NAME
FILE...`` keeps what one has written before on this machine; then the page is written.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from ci import figures
from ci.performance_tables import COMBINED, TABLES

PAGE = figures.ROOT / "docs" / "measurements" / "performance.md"
MARK = re.compile(r"(<!-- table (\S+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def page(text: str) -> str:
    """Return the page with what stands between its marks made anew.

    Raises
    ------
    ValueError
        When a mark names no figure, or there is a figure without a mark.
    """
    named = {match[2] for match in MARK.finditer(text)}
    missing = sorted({*figures.COMMANDS, *COMBINED} - named)
    if missing:
        raise ValueError(f"{PAGE.name}: expected <!-- table {missing[0]} -->, found none")
    return MARK.sub(lambda match: f"{match[1]}{section(match[2])}{match[4]}", text)


def section(name: str) -> str:
    """Return a table, and above it which command made it, when, and where."""
    if name in COMBINED:
        return "\n" + "\n".join(COMBINED[name]()) + "\n"
    if name not in figures.COMMANDS:
        known = ", ".join([*figures.COMMANDS, *COMBINED])
        raise ValueError(f"{PAGE.name}: expected a table of {known}, found {name!r}")
    command, found = figures.COMMANDS[name], figures.figure(name)
    if found is None:
        return f"\n`{command}`: not measured yet\n"
    lines = TABLES[name.partition("-")[0]](found)
    return "\n".join(["", f"`{command}`, {found['date']}, {place(found)}", "", *lines, ""])


def place(found: dict[str, Any]) -> str:
    """Return the machine and the versions that a figure was measured with."""
    machine = found["machine"]
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


def main(arguments: list[str]) -> int:
    """Measure, keep, write or compare."""
    known = ", ".join(figures.COMMANDS)
    if arguments[:1] in (["measure"], ["keep"]):
        names = arguments[1:] if arguments[0] == "measure" else arguments[1:2]
        if not names or not {*names} <= {*figures.COMMANDS}:
            print(f"{arguments[0]}: expected some of {known}, found {names}", file=sys.stderr)
            return 2
        if arguments[0] == "keep" and not arguments[2:]:
            print(f"keep {names[0]}: expected files after the name, found none", file=sys.stderr)
            return 2
        if arguments[0] == "keep":
            figures.keep(names[0], [Path(file) for file in arguments[2:]])
        else:
            for name in names:
                figures.measure(name)
    before = PAGE.read_text(encoding="utf-8")
    text = page(before)
    if "--check" not in arguments:
        PAGE.write_text(text, encoding="utf-8")
    elif text != before:
        print(f"{PAGE} is not what it would be; run python -m ci.performance", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
