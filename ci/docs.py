"""Build the documentation site: ``python -m ci.docs``, with warnings as errors.

The tutorials run during the build, and their pages show their pictures; ``--no-run`` skips that.
The site is ``docs/_build/html/index.html``. Needs ``pip install -e '.[docs]'``.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
#: Pictures of the examples, and their captions.
PICTURES = DOCS / "figures" / "gallery"
#: Folders that a build makes.
MADE = (DOCS / "_build", DOCS / "gallery", DOCS / "reference")
#: Rooms of the reference, a page for each.
ROOMS = (
    "daskdl.nn",
    "daskdl.ops",
    "daskdl.optim",
    "daskdl.optim.schedules",
    "daskdl.metrics",
    "daskdl.models",
    "daskdl.data",
    "daskdl.data.image",
    "daskdl.data.text",
    "daskdl.train",
    "daskdl.predict",
    "daskdl.quantization",
    "daskdl.plot",
    "daskdl.search",
    "daskdl.stream",
    "daskdl.data.tabular",
    "daskdl.cluster",
    "daskdl.collective",
    "daskdl.sklearn",
    "daskdl.torch",
    "daskdl.text",
    "daskdl.interop",
    "daskdl.errors",
    "nowcast.forecasters",
    "nowcast.verification",
    "nowcast.plot",
    "nowcast.simulate",
    "daskdl",
)


def pages() -> list[Path]:
    """Return the pages written by hand, sorted; a build may be making others meanwhile."""
    return sorted(p for p in DOCS.rglob("*.md") if not {*MADE}.intersection(p.parents))


def write_gallery(folder: Path = DOCS / "gallery") -> None:
    """Write a page for each program of ``examples/``: its docstring, a picture, and its source."""
    captions = tomllib.loads((PICTURES / "captions.toml").read_text(encoding="utf-8"))
    folder.mkdir(parents=True, exist_ok=True)
    programs = sorted((DOCS.parent / "examples").glob("*.py"))
    lines = [
        "# Examples",
        "",
        "Whole programs that can be read in one sitting; tests run them. Each picture was drawn by "
        "functions of its program from simulated data.",
        "",
        "::::{grid} 1 2 2 3",
        ":gutter: 3",
        "",
    ]
    for program in programs:
        words = ast.get_docstring(ast.parse(program.read_text(encoding="utf-8"))) or ""
        first, _, rest = words.partition("\n")
        shows = captions[program.stem]
        picture = f"../{(PICTURES / program.stem).relative_to(DOCS)}.png"
        lines += [
            f":::{{grid-item-card}} {program.name}",
            f":link: {program.stem}",
            ":link-type: doc",
            f":img-top: {picture}",
            f":img-alt: {shows}",
            "",
            first,
            ":::",
            "",
        ]
        page = f"# {program.name}\n\n{first}\n\n```text\n{rest.strip() or first}\n```\n\n"
        page += f"```{{figure}} {picture}\n:alt: {shows}\n\n{shows}\n```\n\n"
        page += f"```{{literalinclude}} ../../examples/{program.name}\n:language: python\n```\n"
        (folder / f"{program.stem}.md").write_text(page, encoding="utf-8")
    lines += [
        "::::",
        "",
        "```{toctree}",
        ":hidden:",
        "",
        *(program.stem for program in programs),
        "```",
        "",
    ]
    (folder / "index.md").write_text("\n".join(lines), encoding="utf-8")


def public_names(room: str) -> list[str]:
    """Return the names that a room exports: its ``__all__``, or the classes that it defines."""
    module = importlib.import_module(room)
    defined = [n for n, v in vars(module).items() if isinstance(v, type) and v.__module__ == room]
    names = sorted(getattr(module, "__all__", defined), key=str.lower)
    shown = (inspect.isclass, inspect.isroutine)
    return [n for n in names if any(kind(getattr(module, n)) for kind in shown) and n[0] != "_"]


def write_reference(folder: Path = DOCS / "reference") -> None:
    """Write a page for each room, with a table of its public names that links to their pages."""
    folder.mkdir(parents=True, exist_ok=True)
    index = ["Reference", "=========", "", ".. toctree::", "   :maxdepth: 1", ""]
    pages: dict[int, str] = {}
    for room in ROOMS:
        module = importlib.import_module(room)
        words = (module.__doc__ or "").split("\n\n", 1)[0]
        lines = [room, "=" * len(room), "", words, "", f".. currentmodule:: {room}", ""]
        names = public_names(room)
        # A name that two rooms export has its page in the first.
        new = [name for name in names if id(getattr(module, name)) not in pages]
        lines += [".. autosummary::", "   :toctree: generated", "   :nosignatures:", ""]
        lines += [f"   {name}" for name in new] + [""]
        for name in names:
            page = pages.setdefault(id(getattr(module, name)), f"{room}.{name}")
            if name not in new:
                lines += [f"- :py:obj:`{name} <{page}>`"]
        (folder / f"{room}.rst").write_text("\n".join([*lines, ""]), encoding="utf-8")
        index.append(f"   {room}")
    (folder / "index.rst").write_text("\n".join([*index, ""]), encoding="utf-8")


def build(run: bool = True, folder: Path = DOCS / "_build" / "html") -> int:
    """Build the site from scratch into ``folder``; return Sphinx's exit code."""
    for made in MADE:
        shutil.rmtree(made, ignore_errors=True)
    write_gallery()
    write_reference()
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q"]
    environment = os.environ | {"DASKDL_DOCS_EXECUTION": "force" if run else "off"}
    return subprocess.run([*command, DOCS, folder], env=environment, check=False).returncode


def main() -> int:
    """Build the site with or without running the tutorials."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--no-run", action="store_true", help="do not run the tutorials")
    return build(run=not parser.parse_args().no_run)


if __name__ == "__main__":
    sys.exit(main())
