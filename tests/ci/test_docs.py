"""The reference has every public name, the gallery every example; first lines have a noun."""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import sys
import textwrap
from pathlib import Path

import pytest

import daskdl
from ci import docs, docstrings

ROOT = Path(__file__).resolve().parents[2]
#: Rooms without a page in the reference: commands, internals, and subjects of other pages.
INNER = {
    "cli",
    "compat",
    "console",
    "files",
    "kernels",
    "masked",
    "names",
    "rows",
    "scaling",
    "signals",
    "tensor",
    "upper",
    "version",
}


def test_every_room_has_its_page():
    rooms = {module.name for module in pkgutil.iter_modules(daskdl.__path__)} - INNER
    assert {f"daskdl.{room}" for room in rooms} <= set(docs.ROOMS)


#: Public names without an example, with the reason.
WITHOUT_EXAMPLE = {
    "Reader", "Sink", "Source", "Writer",  # protocols: docs/stream.md implements a queue
    "Communicator",  # collective.run passes one to its function
    "Tensor",  # op and no_grad, in the same room, have examples
    "Pysteps",  # needs the extra pysteps
}  # fmt: skip


@pytest.mark.parametrize("room", docs.ROOMS)
def test_public_names_are_documented(room):
    if room == "daskdl.torch":
        pytest.importorskip("torch")
    module = importlib.import_module(room)
    names = docs.public_names(room)
    assert names
    assert [name for name in names if not (getattr(module, name).__doc__ or "").strip()] == []


#: Operations that layers run; a row in tests/daskdl/nn/recipes.py checks the shapes of each.
RUN_BY_LAYERS = set(
    re.findall(
        r'(?:ops\.|_operation = (?:\d, )?")(\w+)',
        "".join(p.read_text(encoding="utf-8") for p in (ROOT / "daskdl" / "nn").rglob("*.py")),
    )
)


SOURCES = "".join(
    path.read_text(encoding="utf-8")
    for package in ("daskdl", "nowcast")
    for path in sorted((ROOT / package).rglob("*.py"))
)


@pytest.mark.parametrize("room", docs.ROOMS)
def test_public_names_have_an_example(room):
    """In its docstring, in one of its methods, or in another name's example that calls it.

    tests/test_doctests.py runs them.
    """
    if room == "daskdl.torch":
        pytest.importorskip("torch")
    module = importlib.import_module(room)
    without = {name for name in docs.public_names(room) if not exemplified(getattr(module, name))}
    without = {name for name in without if not re.search(rf">>> .*\b{name}\(", SOURCES)}
    if room == "daskdl.ops":
        without -= RUN_BY_LAYERS
    assert without <= WITHOUT_EXAMPLE


def exemplified(thing):
    members = (
        [getattr(thing, n) for n in dir(thing) if n[0] != "_"] if isinstance(thing, type) else []
    )
    return any(">>> " in (getattr(part, "__doc__", None) or "") for part in [thing, *members])


def test_gallery_has_every_example_with_a_picture(tmp_path):
    docs.write_gallery(tmp_path)
    examples = {path.stem for path in (ROOT / "examples").glob("*.py")}
    assert {path.stem for path in tmp_path.glob("*.md")} == examples | {"index"}
    assert {path.stem for path in docs.PICTURES.glob("*.png")} == examples
    index = (tmp_path / "index.md").read_text()
    for name in examples:
        picture = f"../figures/gallery/{name}.png"
        assert f":img-top: {picture}\n" in index
        assert f"{{figure}} {picture}\n" in (tmp_path / f"{name}.md").read_text()


def test_first_lines_without_a_noun_are_found(tmp_path, capsys):
    (tmp_path / "daskdl").mkdir()
    code = """
    def a():
        "Return what is given."
    class B:
        "Those of a column."
        def c(self):
            "Return the sum of what is given."
    """
    (tmp_path / "daskdl" / "x.py").write_text(textwrap.dedent(code))
    assert docstrings.main(tmp_path) == 1
    problems = capsys.readouterr().err
    assert "daskdl/x.py:2: Return what is given." in problems
    assert "daskdl/x.py:4: Those of a column." in problems
    assert "name the thing" in problems
    assert "x.py:6" not in problems


def test_every_page_is_in_a_table_of_contents():
    trees = [path.read_text() for path in docs.DOCS.glob("*.md") if "{toctree}" in path.read_text()]
    named = {line.strip() for tree in trees for line in tree.splitlines()}
    pages = {path.stem for path in docs.DOCS.glob("*.md")} - {"index"}
    assert pages <= named


CELL = re.compile(r"^```\{code-cell\}[^\n]*\n((?::[^\n]*\n)*)(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [
    str(page.relative_to(docs.DOCS))
    for page in docs.pages()
    if CELL.search(page.read_text(encoding="utf-8"))
]


#: Pages whose subject has tests of its own; ``python -m ci.docs`` runs them too.
LONG = (
    "radar", "forecaster", "segmentation", "pytorch", "encoder", "killed_worker",
    "larger_than_memory", "scenes", "images", "text",
)  # fmt: skip


def test_pages_with_cells_are_found():
    assert {"start/index.md", "tutorials/radar.md", "tutorials/killed_worker.md"} <= {*PAGES}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=pytest.mark.long) if Path(p).stem in LONG else p for p in PAGES],
)
def test_a_page_runs_as_a_notebook(page, tmp_path, monkeypatch):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    if page == "tutorials/pytorch.md":
        pytest.importorskip("peft")
    if page == "tutorials/encoder.md":
        pytest.importorskip("tokenizers")
    if page == "tutorials/onnx.md":
        pytest.importorskip("onnx")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    cells = [nbformat.v4.new_code_cell(code) for _, code in CELL.findall(text)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    client = nbclient.NotebookClient(
        notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    )
    client.execute()
    printed = "".join(output.get("text", "") for cell in notebook.cells for output in cell.outputs)
    assert "Traceback" not in printed  # of a program that a cell calls
