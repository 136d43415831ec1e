"""Draw docs/architecture.svg: the rooms of daskdl and nowcast, and which imports which.

Usage: python -m ci.architecture [--check]; --check writes nothing, and fails if the drawing or the
page is out of date. A room is a folder or a file right below a package. The tables of the page get
a row for a new room, with the first line of its docstring, in the order of pyproject.toml.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import networkx as nx
import numpy as np
from scipy.optimize import isotonic_regression

from ci.pages import write_or_check

ROOT = Path(__file__).resolve().parents[1]
DRAWING = ROOT / "docs" / "architecture.svg"
PAGE = ROOT / "docs" / "architecture.md"
PACKAGES = ("daskdl", "nowcast")

Graph = dict[str, set[str]]
#: Pixels: a box's width and height, the gaps to its right and below, the margin, a passing line.
WIDTH, HEIGHT, BESIDE, BELOW, MARGIN, LINE = 118, 30, 16, 44, 20, 14
FONT = "DejaVu Sans, Verdana, sans-serif"
FILL = {"daskdl": "#dbe9f6", "nowcast": "#dff0d8"}
EDGE = {"daskdl": "#3b6ea5", "nowcast": "#4c8c3f"}


def room_of(name: str) -> str | None:
    """Return the room of a dotted name, None for a package itself and for other packages."""
    parts = name.split(".")
    return ".".join(parts[:2]) if parts[0] in PACKAGES and len(parts) > 1 else None


def imported(tree: ast.Module) -> Iterator[str]:
    """Yield the dotted names that a file imports, inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def rooms(root: Path = ROOT) -> Graph:
    """Return for each room the rooms that it imports; names exported by packages do not count."""
    graph: Graph = {}
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            room = room_of(".".join(path.relative_to(root).with_suffix("").parts))
            if room is None or room.endswith(".__init__"):
                continue
            known = graph.setdefault(room, set())
            targets = map(room_of, imported(ast.parse(path.read_text(encoding="utf-8"))))
            known |= {target for target in targets if target and target != room}
    # A name that a package exports, as in "from daskdl import Trainer", is no room.
    return {room: targets & graph.keys() for room, targets in graph.items()}


def without_implied(graph: Graph) -> Graph:
    """Return the graph without the arrows that follow from others."""
    return {
        node: set(near) for node, near in nx.transitive_reduction(nx.DiGraph(graph)).adj.items()
    }


def levels(graph: Graph) -> dict[str, int]:
    """Return the row of each node, counted from the bottom: above all nodes that it leads to."""
    rows = nx.topological_generations(nx.DiGraph(graph).reverse())
    return {node: level for level, row in enumerate(rows) for node in row}


def rows_of(graph: Graph) -> tuple[list[list[str]], list[tuple[str, str]]]:
    """Return the rows from the bottom up, and the arrows from each row to the one below.

    An arrow past a row has a point in it, a name that begins with ``|``.
    """
    row = levels(graph)
    rows: list[list[str]] = [[] for _ in range(1 + max(row.values()))]
    for node in sorted(graph):
        rows[row[node]].append(node)
    arrows = []
    for node in sorted(graph):
        for target in sorted(graph[node]):
            above = node
            for between in range(row[node] - 1, row[target], -1):
                point = f"|{node}|{target}|{between}"
                rows[between].append(point)
                arrows.append((above, point))
                above = point
            arrows.append((above, target))
    return rows, arrows


def width(node: str) -> int:
    """Return the width in pixels of a node in its row."""
    return LINE if node.startswith("|") else WIDTH + BESIDE


def crossings(rows: list[list[str]], neighbours: list[tuple[str, str]]) -> int:
    """Return how many arrows cross."""
    place = {node: i for row in rows for i, node in enumerate(row)}
    level = {node: i for i, row in enumerate(rows) for node in row}
    count = 0
    for i, (a, b) in enumerate(neighbours):
        for c, d in neighbours[:i]:
            same = level[a] == level[c]
            count += same and (place[a] - place[c]) * (place[b] - place[d]) < 0
    return count


def ordered(rows: list[list[str]], arrows: list[tuple[str, str]]) -> list[list[str]]:
    """Return the rows sorted for few crossings: each node near the mean of its neighbours."""
    best, least = [list(row) for row in rows], crossings(rows, arrows)
    current = [list(row) for row in rows]
    for sweep in range(24):
        down = sweep % 2 == 0
        for i in range(len(current) - 2, -1, -1) if down else range(1, len(current)):
            adjacent = current[i + 1] if down else current[i - 1]
            place = {node: k / max(1, len(adjacent) - 1) for k, node in enumerate(adjacent)}
            mean = {}
            for k, node in enumerate(current[i]):
                linked = [a if down else b for a, b in arrows if node == (b if down else a)]
                near = [place[end] for end in linked if end in place]
                alone = k / max(1, len(current[i]) - 1)
                mean[node] = sum(near) / len(near) if near else alone
            current[i].sort(key=mean.__getitem__)
        count = crossings(current, arrows)
        if count < least:
            best, least = [list(row) for row in current], count
    return best


def places(rows: list[list[str]], arrows: list[tuple[str, str]]) -> dict[str, float]:
    """Return the middle of each node in its row: near its neighbours, without overlap."""
    centres = {}
    for row in rows:
        x = 0.0
        for node in row:
            centres[node] = x + width(node) / 2
            x += width(node)
    for sweep in range(200):
        for row in rows if sweep % 2 else rows[::-1]:
            wanted = []
            for node in row:
                linked = [b if a == node else a for a, b in arrows if node in (a, b)]
                # Points pull at each other most, so that long arrows are straight.
                pull = [8 if node[0] == end[0] == "|" else 1 for end in linked]
                near = sum(w * centres[end] for w, end in zip(pull, linked, strict=True))
                wanted.append(near / sum(pull) if linked else centres[node])
            # As near to the wanted places as can be, in their order, and without overlaps.
            gaps = [(width(a) + width(b)) / 2 for a, b in pairwise(row)]
            middles = np.cumsum([0, *gaps])
            centres |= zip(row, isotonic_regression(wanted - middles).x + middles, strict=True)
    left = min(centres[node] - width(node) / 2 for node in centres)
    return {node: round(float(x - left) + MARGIN, 1) for node, x in centres.items()}


def drawing(graph: Graph) -> str:
    """Return the drawing of a graph of rooms, as SVG."""
    rows, arrows = rows_of(without_implied(graph))
    rows = ordered(rows, arrows)
    x = places(rows, arrows)
    top = {
        n: MARGIN + (len(rows) - 1 - i) * (HEIGHT + BELOW) for i, r in enumerate(rows) for n in r
    }
    total = round(max(x[node] + width(node) / 2 for node in x) + MARGIN)
    tall = len(rows) * (HEIGHT + BELOW) + MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{total}" height="{tall}" '
        f'viewBox="0 0 {total} {tall}" font-family="{FONT}" font-size="14">',
        "<title>Rooms of daskdl and nowcast; arrows are imports</title>",
        f'<rect width="{total}" height="{tall}" fill="white"/>',
    ]
    for start, end in arrows:
        colour = EDGE[start.lstrip("|").split(".")[0]]
        begin = top[start] + HEIGHT
        through = start.startswith("|")
        path = f"M{x[start]} {top[start]}V{begin}" if through else f"M{x[start]} {begin}"
        head = top[end] - (0 if end.startswith("|") else 5)
        middle = (begin + head) / 2
        path += f"C{x[start]} {middle} {x[end]} {middle} {x[end]} {head}"
        lines.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.3"/>')
        if not end.startswith("|"):
            tip = f"M{x[end] - 4} {head - 3}L{x[end]} {head + 5}L{x[end] + 4} {head - 3}Z"
            lines.append(f'<path d="{tip}" fill="{colour}"/>')
    for node in sorted(graph):
        package, name = node.split(".")
        shape = (
            f'x="{x[node] - WIDTH / 2}" y="{top[node]}" width="{WIDTH}" height="{HEIGHT}" rx="5"'
        )
        lines.append(f'<rect {shape} fill="{FILL[package]}" stroke="{EDGE[package]}"/>')
        middle = top[node] + HEIGHT / 2 + 5
        lines.append(f'<text x="{x[node]}" y="{middle}" text-anchor="middle">{name}</text>')
    words = "Arrows are imports; those that follow from others are left out. "
    words += "Blue: daskdl; green: nowcast."
    lines.append(f'<text x="{MARGIN}" y="{tall - 16}" font-size="12">{words}</text>')
    return "\n".join([*lines, "</svg>", ""])


def with_rooms(page: str, root: Path = ROOT) -> str:
    """Return the page with a row for each room of the contracts of imports, in their order."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    for contract in settings["tool"]["importlinter"]["contracts"]:
        for package in contract.get("containers", ()):
            before, rest = page.split(f"### {package}\n", 1)
            head, table = rest.split("|---|---|\n", 1)
            rows, after = table.split("\n\n", 1)
            known = {row.split("`")[1]: row for row in rows.splitlines()}
            order = [known.get(name) or _row(root / package, name) for name in contract["layers"]]
            table = "\n".join(order)
            page = f"{before}### {package}\n{head}|---|---|\n{table}\n\n{after}"
    return page


def _row(package: Path, name: str) -> str:
    path = package / name / "__init__.py"
    path = path if path.is_file() else package / f"{name}.py"
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return f"| `{name}` | {text.splitlines()[0]} |"


def main(arguments: list[str]) -> int:
    """Write the drawing and the tables, or compare with them."""
    texts = {DRAWING: drawing(rooms()), PAGE: with_rooms(PAGE.read_text(encoding="utf-8"))}
    return write_or_check(texts, arguments, "python -m ci.architecture")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
