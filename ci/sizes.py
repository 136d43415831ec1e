"""Print length and growth of files and rooms; fail if a file or a room is above its limit.

Usage: python ci/sizes.py [BASE]; growth is since the commit BASE, by default origin/main.
``python ci/sizes.py --budget`` writes ``ci/sizes.txt``, the limit of each room, from today's sizes.
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
#: File with a line for each room: the limits of its lines and of the lines of its tests.
BUDGET = Path("ci") / "sizes.txt"
HEAD = """\
# Limits of the lines of each room and of its tests, which python ci/sizes.py checks. To let a room
# grow, change its line on purpose; python ci/sizes.py --budget writes limits from today's sizes.
"""


def source_files(root: Path = ROOT) -> list[Path]:
    """Return all Python files of the project, sorted."""
    return sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.py"))


def line_count(path: Path) -> int:
    """Return the number of lines of a file."""
    return len(path.read_text(encoding="utf-8").splitlines())


def growth(base: str, root: Path = ROOT) -> dict[str, tuple[int, int]]:
    """Return (lines added, lines removed) by file since the commit ``base``.

    Uncommitted changes count, untracked files do not. Without such a commit it is empty.
    """
    command = ["git", "diff", "--numstat", "--no-renames", base, "--", *FOLDERS]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    rows = (line.split("\t") for line in run.stdout.splitlines())
    return {path: (int(plus), int(minus)) for plus, minus, path in rows if plus != "-"}


def table(root: Path, base: str) -> list[str]:
    """Return the lines of the table: one for each folder with Python files, and the total."""
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
    """Return a message for each file above the limit."""
    return [
        f"{path.relative_to(root)}: expected at most {LIMIT} lines, found {count}; split it"
        for path in source_files(root)
        if (count := line_count(path)) > LIMIT
    ]


def room_of(path: Path) -> tuple[str, int]:
    """Return the room of a file, and its column of the budget: 0 for source, 1 for tests."""
    folders = path.parent.parts
    column = int(folders[0] == "tests" and len(folders) > 1)
    room = folders[1:] if column else folders
    return "/".join(room[: 2 if room[0] in ("daskdl", "nowcast") else 1]), column


def rooms(root: Path = ROOT) -> dict[str, list[int]]:
    """Return [lines of source, lines of tests] by room."""
    sizes: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for path in source_files(root):
        room, column = room_of(path.relative_to(root))
        sizes[room][column] += line_count(path)
    return dict(sorted(sizes.items()))


def totals(root: Path = ROOT) -> str:
    """Return the sentence with the sizes of product, tests, and all."""
    sizes = rooms(root)
    product = sum(lines for room, (lines, _) in sizes.items() if room.split("/")[0] in FOLDERS[:2])
    tests = sum(tests for _, tests in sizes.values()) + sizes.get("tests", [0, 0])[0]
    counts = [line_count(path) for path in source_files(root)]
    return (
        f"product {product:,}, tests {tests:,}, examples and ci {sum(counts) - product - tests:,}, "
        f"all {sum(counts):,} lines in {len(counts):,} files"
    )


def write_budget(root: Path = ROOT) -> None:
    """Write the budget: today's sizes and one percent, rounded up to tens."""
    rows = [f"{'# room':24}{'lines':>8}{'tests':>8}"]
    for room, sizes in rooms(root).items():
        lines, tests = (-(-count * 101 // 1000) * 10 for count in sizes)
        rows.append(f"{room:24}{lines:8}{tests:8}")
    (root / BUDGET).write_text(HEAD + "\n".join(rows) + "\n", encoding="utf-8")


def over_budget(root: Path = ROOT) -> list[str]:
    """Return a message for each room above its budget, or without one."""
    if not (root / BUDGET).is_file():
        return [f"{BUDGET}: expected a table, found none; python ci/sizes.py --budget writes it"]
    budget: dict[str, list[int]] = {}
    for line in (root / BUDGET).read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            room, *limits = line.split()
            budget[room] = [int(limit) for limit in limits]
    sizes = rooms(root)
    problems = [f"{BUDGET}: {room} is no room; take its line out" for room in budget.keys() - sizes]
    for room, counts in sizes.items():
        if room not in budget:
            problems.append(f"{BUDGET}: expected a line for {room}, found none; add it on purpose")
            continue
        for kind, limit, count in zip(
            (room, f"tests of {room}"), budget[room], counts, strict=True
        ):
            if count > limit:
                problems.append(
                    f"{kind}: expected at most {limit} lines, found {count}, {count - limit} above "
                    f"the budget; take some out, or change its line in {BUDGET} on purpose"
                )
    return sorted(problems)


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Print the table; return 1 if a file is too long or a room is above its budget."""
    if arguments == ["--budget"]:
        write_budget(root)
        return 0
    print("\n".join(table(root, arguments[0] if arguments else "origin/main")))
    print(totals(root))
    problems = too_long(root) + over_budget(root)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
