"""The layout: tests mirror the source, files are short, heavy modules load late, no cycles.

No module imports itself through others, wherever in a file the imports are. Imports for type
checkers only never run and do not count: a callback names the trainer that it is handed, and the
trainer has callbacks.
"""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from ci.sizes import too_long

ROOT = Path(__file__).resolve().parents[1]
SOURCE = sorted(
    path.relative_to(ROOT)
    for package in ("daskdl", "nowcast")
    for path in (ROOT / package).rglob("*.py")
    if path.name != "__init__.py"
)
HEAVY = {
    *("dask", "distributed", "xarray", "zarr", "numba", "scipy", "matplotlib", "xradar"),
    *("pandas", "skimage", "PIL", "sklearn", "torch"),
}
#: `daskdl/__init__.py` imports its parts for type checkers, and by name when they are used.
LAZY = "daskdl"


def test_tests_mirror_the_folders():
    folders = {path.parent for path in SOURCE}
    missing = [f for f in sorted(folders) if not list((ROOT / "tests" / f).glob("test_*.py"))]
    assert not missing


def test_no_file_is_too_long():
    assert not too_long()


def test_every_file_says_its_subject_in_its_first_line():
    for path in SOURCE:
        first = (ROOT / path).read_text(encoding="utf-8").split("\n", 1)[0]
        assert first.startswith('"""'), path
        assert len(first) > 10, path


def test_every_example_reports_user_errors_in_a_sentence():
    for path in sorted((ROOT / "examples").glob("*.py")):
        _, programs, end = path.read_text(encoding="utf-8").partition('if __name__ == "__main__":')
        assert not programs or end.endswith("\n    script(main)\n"), path


def test_every_folder_is_a_package():
    """Without its __init__.py a folder is invisible to the check of imports."""
    for path in SOURCE:
        assert (ROOT / path.parent / "__init__.py").is_file(), path.parent


def heavy_modules_after(code: str) -> set[str]:
    """Return the heavy modules that a fresh interpreter has loaded after some code."""
    report = f"{code}\nimport sys\nprint(*({HEAVY!r} & sys.modules.keys()), file=sys.stderr)"
    run = subprocess.run(
        [sys.executable, "-c", report], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(run.stderr.split())


def test_importing_daskdl_loads_nothing_heavy():
    assert heavy_modules_after("import daskdl, daskdl.errors") == set()


def test_training_in_one_process_needs_no_cluster_no_tables_and_no_images():
    """Importing training loads numpy, numba and Dask's graphs, and a bounded number of modules."""
    code = "import daskdl.nn, daskdl.optim, daskdl.models, daskdl.train\n"
    loaded = heavy_modules_after(code)
    assert loaded <= {"dask", "numba", "scipy"}  # numba looks for SciPy itself
    count = "import sys\nassert len(sys.modules) < 1250, len(sys.modules)"
    assert heavy_modules_after(code + count) == loaded


@pytest.mark.parametrize("package", ["daskdl", "nowcast"])
def test_help_loads_nothing_heavy(package):
    if importlib.util.find_spec(f"{package}.cli") is None:
        pytest.skip(f"{package} has no command line yet")
    code = f"from {package}.cli import main\nimport sys\nsys.argv[1:] = ['--help']\n"
    assert heavy_modules_after(code + "assert not main()") == set()


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
