"""No module imports itself through others, wherever in a file the imports are.

Imports for type checkers only never run and do not count: a callback names the trainer that it is
handed, and the trainer has callbacks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
#: `daskdl/__init__.py` imports its parts for type checkers, and by name when they are used.
LAZY = "daskdl"


def modules_of(package: Path) -> dict[str, ast.Module]:
    """Return the parsed files of a package by their dotted names."""
    modules = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        modules[name] = ast.parse(path.read_text(encoding="utf-8"))
    return modules


def executed_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a file except those under ``if TYPE_CHECKING:``."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        yield node
        yield from executed_nodes(node)


def imports_of(modules: dict[str, ast.Module]) -> dict[str, set[str]]:
    """Return the names of the given modules that each one imports."""
    imports: dict[str, set[str]] = {name: set() for name in modules}
    for name, tree in modules.items():
        for node in executed_nodes(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                children = {f"{node.module}.{alias.name}" for alias in node.names} & modules.keys()
                imports[name] |= children or {node.module} & modules.keys()
            elif isinstance(node, ast.Import):
                imports[name] |= {alias.name for alias in node.names} & modules.keys()
        imports[name].discard(name)
    return imports


def first_cycle(imports: dict[str, set[str]]) -> list[str] | None:
    """Return the names of a cycle, each imported by the one after it, or None."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return None


@pytest.mark.slow
@pytest.mark.parametrize("package", ["daskdl", "nowcast"])
def test_no_modules_import_each_other(package):
    imports = imports_of(modules_of(ROOT / package))
    imports.pop(LAZY, None)
    cycle = first_cycle(imports)
    assert cycle is None, " <- ".join(cycle or [])


def test_a_cycle_is_found_wherever_the_import_is():
    lazy = ast.parse("def f():\n    from p.a import g\n")
    typed = ast.parse("if TYPE_CHECKING:\n    import p.a\n")
    modules = {"p.a": ast.parse("import p.b"), "p.b": ast.parse("from p import c"), "p.c": lazy}
    assert first_cycle(imports_of(modules)) is not None
    assert first_cycle(imports_of({**modules, "p.c": ast.parse("import numpy")})) is None
    assert first_cycle(imports_of({**modules, "p.c": typed})) is None
