"""Print how long the files are, folder by folder, and how much they grew; fail above the limit.

Usage: python ci/sizes.py [BASE]; growth is counted against the commit BASE, origin/main without it.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("daskdl", "nowcast", "examples", "ci", "tests")
LIMIT = 400


def source_files(root: Path = ROOT) -> list[Path]:
    """Return all Python files of the project, sorted."""
    return sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.py"))


def line_count(path: Path) -> int:
    """Return the number of lines of a file."""
    return len(path.read_text(encoding="utf-8").splitlines())


def growth(base: str, root: Path = ROOT) -> dict[str, tuple[int, int]]:
    """Return (lines added, lines removed) by file since the commit ``base``.

    What is not committed counts; files that git does not know do not, and without such a commit
    nothing does.
    """
    command = ["git", "diff", "--numstat", "--no-renames", base, "--", *FOLDERS]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    rows = (line.split("\t") for line in run.stdout.splitlines())
    return {path: (int(plus), int(minus)) for plus, minus, path in rows if plus != "-"}


def table(root: Path, base: str) -> list[str]:
    """Return the table's lines: one for each folder that holds Python files, and the total."""
    changes = growth(base, root)
    folders: dict[str, list[int]] = defaultdict(list)
    for path in source_files(root):
        folders[str(path.parent.relative_to(root))].append(line_count(path))
    lines = [f"{'folder':32}{'files':>6}{'lines':>8}{'median':>8}{'longest':>9}  since {base}"]
    for folder, counts in folders.items():
        changed = [c for path, c in changes.items() if str(Path(path).parent) == folder]
        lines.append(_row(folder, counts, changed))
    every = [count for counts in folders.values() for count in counts]
    return [*lines, _row("all", every, list(changes.values()))]


def _row(folder: str, counts: list[int], changed: list[tuple[int, int]]) -> str:
    plus, minus = (sum(column) for column in zip(*changed, strict=True)) if changed else (0, 0)
    middle = f"{statistics.median(counts):.0f}" if counts else "-"
    longest = max(counts, default=0)
    sizes = f"{folder:32}{len(counts):6}{sum(counts):8}{middle:>8}{longest:9}"
    return f"{sizes}  +{plus} -{minus}"


def too_long(root: Path = ROOT) -> list[str]:
    """Return a sentence for each file above the limit."""
    return [
        f"{path.relative_to(root)}: expected at most {LIMIT} lines, found {count}; split it"
        for path in source_files(root)
        if (count := line_count(path)) > LIMIT
    ]


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Print the table; return 1 when a file is too long."""
    print("\n".join(table(root, arguments[0] if arguments else "origin/main")))
    problems = too_long(root)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
