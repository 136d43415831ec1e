"""Find docstrings whose first line names nothing, such as "Return what is given".

Usage: python ci/docstrings.py. A first line has a noun: the reader learns what is returned, or
made, or asked. Those that were here before are counted, and their number may only fall.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

try:
    from ci.sizes import ROOT, source_files
except ImportError:  # run as a program
    from sizes import ROOT, source_files

#: First lines that name nothing, in the project but its tests, when this was last changed.
ALLOWED = 32
#: A verb, or none, before a clause that stands for the noun.
NAMELESS = re.compile(
    r"((Return|Yield|Give) )?"
    r"(what|where|those|that which|which|((by|from|in|of|to|with) which))\b",
    re.IGNORECASE,
)


def nameless(path: Path) -> list[str]:
    """Return ``line: first line`` of each docstring in a file whose first line names nothing."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, kinds):
            first = (ast.get_docstring(node) or "").partition("\n")[0]
            if NAMELESS.match(first):
                found.append(f"{getattr(node, 'lineno', 1)}: {first}")
    return found


def main(root: Path = ROOT, allowed: int = ALLOWED) -> int:
    """Return 1 when there are more such lines than are allowed, and print them."""
    files = [path for path in source_files(root) if path.relative_to(root).parts[0] != "tests"]
    found = [f"{path.relative_to(root)}:{line}" for path in files for line in nameless(path)]
    if len(found) > allowed:
        print("\n".join(found), file=sys.stderr)
    if len(found) != allowed:
        print(
            f"docstrings that begin with what, where, those or which instead of a noun: expected "
            f"at most {allowed}, found {len(found)}; "
            + ("name the thing" if len(found) > allowed else "lower ALLOWED in ci/docstrings.py"),
            file=sys.stderr,
        )
    return int(len(found) > allowed)


if __name__ == "__main__":
    sys.exit(main())
