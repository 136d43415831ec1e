"""Write docs/parity.md: BigDL's layers, ours and PyTorch's, checked against the registry.

Usage: python -m ci.parity [--check]; with --check nothing is written, and a table that is not what
it would be fails.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROWS, PAGE = ROOT / "ci" / "parity.txt", ROOT / "docs" / "parity.md"
HEADER = """\
# BigDL's layers, ours, and PyTorch's

Written by `python -m ci.parity` from `ci/parity.txt` and the registry of `daskdl.nn`; a test fails
where the two differ. BigDL's names are those of its Scala layers and of its Keras-style ones.

"""


def page() -> str:
    """Return the whole page.

    Raises
    ------
    ValueError
        When a row names a layer that the registry does not have, or has neither layer nor reason.
    """
    from daskdl import nn

    known = {**nn.Module.registry, "Module": nn.Module}
    ours = {
        name
        for name, layer in known.items()
        if layer.__module__.startswith("daskdl.nn.")
        and not layer.__module__.startswith("daskdl.nn.losses")
        and not name.startswith("_")
    }
    lines, named, counts = [], {"Module"}, [0, 0]
    for line in ROWS.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            lines += ["", line, "", "| BigDL | daskdl | PyTorch |", "|---|---|---|"]
        elif line.strip() and not line.startswith("#"):
            theirs, mine, other = (cell.strip() for cell in line.split("|"))
            if mine != "-" and mine not in ours | {"Module"}:
                raise ValueError(f"{ROWS}: no layer named {mine!r} in the registry: {line}")
            if mine == "-" and len(other) < 10:
                raise ValueError(f"{ROWS}: expected a reason where there is no layer: {line}")
            counts[mine == "-"] += len(theirs.split(","))
            named.add(mine)
            code = f"`{mine}`" if mine != "-" else "none"
            lines.append(f"| {theirs} | {code} | {other} |")
    more = ", ".join(f"`{name}`" for name in sorted(ours - named))
    total = f"{counts[0]} of BigDL's layers have a counterpart here, {counts[1]} have none.\n"
    return f"{HEADER}{total}" + "\n".join(lines) + f"\n\n## Layers that BigDL has not\n\n{more}\n"


def main() -> int:
    """Write the page, or compare with it."""
    text = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
    elif not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != text:
        print(f"{PAGE} is not what it would be; run python -m ci.parity", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
