"""Find docstrings whose first line names nothing, such as "Return what is given".

Usage: python ci/docstrings.py. A first line needs a noun for the thing that is returned or made.
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

#: An optional verb, and a clause instead of a noun.
NAMELESS = re.compile(
    r"((Return|Yield|Give) )?"
    r"(what|where|those|that which|which|((by|from|in|of|to|with) which))\b",
    re.IGNORECASE,
)


def nameless(path: Path) -> list[str]:
    """Return ``line: first line`` of each docstring in a file whose first line names nothing."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    lines = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, kinds):
            first = (ast.get_docstring(node) or "").partition("\n")[0]
            if NAMELESS.match(first):
                lines.append(f"{getattr(node, 'lineno', 1)}: {first}")
    return lines


def main(root: Path = ROOT) -> int:
    """Print such lines; return 1 if there are any."""
    files = [path for path in source_files(root) if path.relative_to(root).parts[0] != "tests"]
    lines = [f"{path.relative_to(root)}:{line}" for path in files for line in nameless(path)]
    if lines:
        print("\n".join(lines), file=sys.stderr)
        print(
            "these docstrings begin with what, where, those or which instead of a noun; name the "
            "thing",
            file=sys.stderr,
        )
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
