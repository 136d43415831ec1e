"""Pages that a program writes: ``--check`` compares instead, and fails if a page is out of date."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path


def write_or_check(texts: Mapping[Path, str], arguments: Sequence[str], command: str) -> int:
    """Write the text of each file; with ``--check`` among the arguments write nothing.

    Returns
    -------
    int
        1 if a file differs from its text, whose command is then printed, else 0.
    """
    for path, text in texts.items():
        if "--check" not in arguments:
            path.write_text(text, encoding="utf-8")
        elif not path.is_file() or path.read_text(encoding="utf-8") != text:
            print(f"{path} is out of date; run {command}", file=sys.stderr)
            return 1
    return 0
