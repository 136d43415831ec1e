"""The documentation's reference has every public name, and its gallery every example."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import pytest

import daskdl
from ci import docs

ROOT = Path(__file__).resolve().parents[2]
#: Rooms without public names of their own: commands, machinery below others, what is explained
#: on pages of its own.
INNER = {
    "cli",
    "compat",
    "console",
    "files",
    "kernels",
    "names",
    "rows",
    "scaling",
    "tensor",
    "version",
}


def test_every_room_has_its_page():
    rooms = {module.name for module in pkgutil.iter_modules(daskdl.__path__)} - INNER
    assert {f"daskdl.{room}" for room in rooms} <= set(docs.ROOMS)


@pytest.mark.parametrize("room", docs.ROOMS)
def test_public_names_are_documented(room):
    if room == "daskdl.torch":
        pytest.importorskip("torch")
    module = importlib.import_module(room)
    names = docs.public_names(room)
    assert names
    assert [name for name in names if not (getattr(module, name).__doc__ or "").strip()] == []


def test_gallery_has_every_example(tmp_path):
    docs.write_gallery(tmp_path)
    examples = {path.stem for path in (ROOT / "examples").glob("*.py")}
    assert {path.stem for path in tmp_path.glob("*.md")} == examples | {"index"}


def test_every_page_has_its_place():
    trees = [path.read_text() for path in docs.DOCS.glob("*.md") if "{toctree}" in path.read_text()]
    named = {line.strip() for tree in trees for line in tree.splitlines()}
    pages = {path.stem for path in docs.DOCS.glob("*.md")} - {"index"}
    assert pages <= named
