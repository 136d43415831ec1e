"""The drawings of the rooms follow the imports, and the pages name files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ci import architecture

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "docs" / "architecture.md", ROOT / "docs" / "glossary.md", ROOT / "CONTRIBUTING.md"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Three rooms in a row; the first also imports the third."""
    for room, code in (("a", "import daskdl.b.x\n"), ("b", "from daskdl import c\n"), ("c", "")):
        folder = tmp_path / "daskdl" / room
        folder.mkdir(parents=True)
        (folder / "__init__.py").touch()
        (folder / "x.py").write_text(code)
    (tmp_path / "daskdl" / "a" / "y.py").write_text("def f():\n    from daskdl.c.x import g\n")
    (tmp_path / "daskdl" / "__init__.py").write_text("from daskdl.a import x\n")
    return tmp_path


def test_the_drawings_are_what_the_imports_make() -> None:
    assert architecture.main(["--check"]) == 0, "run python -m ci.architecture and commit it"


def test_imports_are_found_anywhere_in_a_room(project: Path) -> None:
    imports = architecture.rooms(project)
    assert imports == {
        "daskdl.a": {"daskdl.b", "daskdl.c"},
        "daskdl.b": {"daskdl.c"},
        "daskdl.c": set(),
    }
    assert architecture.without_implied(imports)["daskdl.a"] == {"daskdl.b"}


def test_each_package_has_a_drawing_of_the_arrows_that_no_others_imply(project: Path) -> None:
    graph = architecture.rooms(project)
    graph["daskdl.c"] = {"daskdl.errors"}
    graph |= {"daskdl.errors": set(), "nowcast.d": {"daskdl.b", "daskdl.c"}}
    before = "Before\n```mermaid\nold\n```\nBetween\n```mermaid\n```\nAfter\n"
    page = architecture.with_drawings(before, graph)
    daskdl, nowcast = page.split("\n```\nBetween\n")
    assert daskdl.startswith("Before\n```mermaid\nflowchart TD\n")
    assert nowcast.startswith("```mermaid\nflowchart TD\n")
    assert nowcast.endswith("\n```\nAfter\n")
    boxes = re.compile(r"(\w+)\[(\w+)\]:::(\w+)")
    assert boxes.findall(daskdl) == [(f"daskdl_{room}", room, "daskdl") for room in "abc"]
    assert boxes.findall(nowcast) == [("daskdl_b", "b", "daskdl"), ("nowcast_d", "d", "nowcast")]
    assert re.findall(r"(\w+) --> (\w+)", page) == [
        ("daskdl_a", "daskdl_b"), ("daskdl_b", "daskdl_c"), ("nowcast_d", "daskdl_b")
    ]  # fmt: skip


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_files_that_a_page_names_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    names = set(re.findall(r"`((?:daskdl|nowcast|tests|ci|docs|examples)/[\w./-]*)`", text))
    assert names
    assert not [name for name in sorted(names) if not (ROOT / name).exists()]
    links = set(re.findall(r"\]\(([\w./-]+)", text))
    assert not [link for link in sorted(links) if not (page.parent / link).exists()]


def test_a_new_room_gets_a_row_and_other_rows_stay(project: Path) -> None:
    contract = (
        '[[tool.importlinter.contracts]]\ncontainers = ["daskdl"]\nlayers = ["a", "b", "c"]\n'
    )
    (project / "pyproject.toml").write_text(contract)
    (project / "daskdl" / "b" / "__init__.py").write_text('"""Second."""\n')
    page = "### daskdl\n\n| room | is |\n|---|---|\n| `c` | Mine. |\n| `a` | One. |\n\nMore\n"
    rows = "| `a` | One. |\n| `b` | Second. |\n| `c` | Mine. |"
    updated = architecture.with_rooms(page, project)
    assert updated == f"### daskdl\n\n| room | is |\n|---|---|\n{rows}\n\nMore\n"
    assert architecture.with_rooms(updated, project) == updated


def test_the_functions_of_the_walks_are_in_their_files() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    steps = re.findall(r"`(daskdl/[\w/]+\.py)` `(\w+)`", page)
    assert len(steps) > 30
    for path, name in steps:
        code = (ROOT / path).read_text(encoding="utf-8")
        assert re.search(rf"\b(def|class) {name}\b", code), f"{path}: no {name}"
