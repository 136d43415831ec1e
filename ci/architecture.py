"""Write into docs/architecture.md the rooms of daskdl and nowcast, and which imports which.

Usage: python -m ci.architecture [--check]; --check writes nothing, and fails if a drawing or a
table is out of date. A room is a folder or a file right below a package. The tables of the page get
a row for a new room, with the first line of its docstring, in the order of pyproject.toml.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import networkx as nx

from ci.pages import write_or_check

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"
Graph = dict[str, set[str]]
#: Fill and edge of the boxes of a package.
COLOURS = {"daskdl": ("#dbe9f6", "#3b6ea5"), "nowcast": ("#dff0d8", "#4c8c3f")}
#: Rooms without a box: most others import them.
BELOW = {"compat", "console", "errors", "files", "names", "signals", "upper", "version"}


def room_of(name: str) -> str | None:
    """Return the room of a dotted name, None for a package itself and for other packages."""
    parts = name.split(".")
    return ".".join(parts[:2]) if parts[0] in COLOURS and len(parts) > 1 else None


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
    for package in COLOURS:
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


def drawing(graph: Graph, package: str) -> str:
    """Return the drawing of a package's rooms and those that they import, as text of Mermaid."""
    drawn = {room for room in graph if room.split(".")[1] not in BELOW}
    arrows = without_implied({room: graph[room] & drawn for room in drawn})
    arrows = {room: to for room, to in sorted(arrows.items()) if room.startswith(f"{package}.")}
    lines = ["flowchart TD"]
    for name, (fill, edge) in COLOURS.items():
        boxes = sorted(room for room in {*arrows}.union(*arrows.values()) if room.startswith(name))
        lines.append(f"  classDef {name} fill:{fill},stroke:{edge},color:black")
        lines += [f"  {_id(room)}[{room.split('.')[1]}]:::{name}" for room in boxes]
    for room, targets in arrows.items():
        lines += [f"  {_id(room)} --> {_id(target)}" for target in sorted(targets)]
    return "\n".join(lines)


def _id(room: str) -> str:
    return room.replace(".", "_")  # with its package: "end" alone would end the drawing


def with_drawings(page: str, graph: Graph) -> str:
    """Return the page with a drawing of each package."""
    before, *rests = page.split("```mermaid\n")
    parts = [
        f"{drawing(graph, package)}\n```{rest.split('```', 1)[1]}"
        for package, rest in zip(COLOURS, rests, strict=True)
    ]
    return "```mermaid\n".join([before, *parts])


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
    """Write the drawings and the tables, or compare with them."""
    page = with_drawings(with_rooms(PAGE.read_text(encoding="utf-8")), rooms())
    return write_or_check({PAGE: page}, arguments, "python -m ci.architecture")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
