"""Pages with cells of code: all cells of each run as a notebook, one after the other."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n((?::[^\n]*\n)*)(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = sorted(
    str(page.relative_to(ROOT / "docs"))
    for page in (ROOT / "docs").rglob("*.md")
    if CELL.search(page.read_text(encoding="utf-8"))
)


def test_pages_with_cells_are_found():
    assert {"start/index.md", "tutorials/radar.md", "tutorials/killed_worker.md"} <= {*PAGES}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs_as_a_notebook(page, tmp_path, monkeypatch):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    if page == "tutorials/pytorch.md":
        pytest.importorskip("torch")
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
