"""Names in the documentation, in its text and in code that is not run, exist; so do its links."""

from __future__ import annotations

import ast
import builtins
import difflib
import importlib
import importlib.util
import inspect
import pkgutil
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from ci import docs

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^( *)```py(?:thon)?\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
DOTTED = re.compile(r"(?<![\w./-])(?:daskdl|nowcast)\.[\w.-]*\w(?![\w/])")
TEXTS = {
    str(page.relative_to(ROOT)): page.read_text(encoding="utf-8")
    for page in [*docs.pages(), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
}
#: Dotted words that are files, or endings of lists of names.
FILES = re.compile(r"\.(yaml|safetensors|toml|json|py|md|html|modules)$")
#: Nodes that name functions, and variables that blocks use and do not define.
CALLS = (ast.Call, ast.Attribute)
VARIABLES = {"loss", "model", "net"}
SETTINGS = yaml.safe_load((ROOT / "daskdl" / "cluster" / "daskdl.yaml").read_text(encoding="utf-8"))


def resolved(dotted: str) -> Any:
    """Return the object with a dotted name, importing modules on the way."""
    try:
        return pkgutil.resolve_name(dotted)
    except (ImportError, AttributeError) as error:
        raise LookupError(f"{dotted}: {error}") from None


def public() -> dict[str, Any]:
    """Return the public objects of the rooms by name."""
    names: dict[str, Any] = {"np": None}
    for room in docs.ROOMS:
        if room != "daskdl.torch":
            module = importlib.import_module(room)
            names |= {name: getattr(module, name) for name in docs.public_names(room)}
            names.setdefault(room.rpartition(".")[2], module)
    return names


def defined(tree: ast.AST) -> set[str]:
    """Return the names that code defines, assigns or imports."""
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name | ast.arg)
             if isinstance(getattr(n, "ctx", None), ast.Store)}  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    return names


def missing(code: str, known: dict[str, Any], methods: set[str], local: set[str]) -> list[str]:
    """Return the names that code imports, calls or passes as arguments and that do not exist."""
    problems = []
    known = {name: thing for name, thing in known.items() if name not in local}
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        for alias in node.names:
            origin = getattr(node, "module", alias.name) or ""
            room = origin.partition(".")[0]
            # Dask's libraries that come with an extra are checked where they are installed.
            if not (room.startswith(("dask", "nowcast")) and importlib.util.find_spec(room)):
                continue
            whole = origin if alias.asname else room
            imported = f"{origin}.{alias.name}" if isinstance(node, ast.ImportFrom) else whole
            try:
                known[alias.asname or imported.rpartition(".")[2]] = resolved(imported)
            except LookupError as error:
                problems.append(str(error))
    for node in ast.walk(tree):
        words = ast.unparse(getattr(node, "func", node)) if isinstance(node, CALLS) else ""
        if not re.fullmatch(r"[\w.]+", words):
            continue
        first, _, rest = words.partition(".")
        thing = known.get(first)
        if inspect.ismodule(thing) and rest:
            try:
                thing = resolved(f"{thing.__name__}.{rest}")
            except LookupError as error:
                problems.append(str(error))
        elif isinstance(node, ast.Attribute):
            continue
        elif rest:
            thing = None
            if first not in local and first not in known and rest.split(".")[-1] not in methods:
                problems.append(f"{words}()")
        elif first not in {*known, *local, *VARIABLES} and not hasattr(builtins, first):
            problems.append(f"{first}()")
        if callable(thing) and isinstance(node, ast.Call):
            problems += misfits(words, node, inspect.signature(thing))
    return list(dict.fromkeys(problems))


def misfits(words: str, call: ast.Call, signature: inspect.Signature) -> list[str]:
    """Return the arguments of a call that a function does not take."""
    kinds = {p.kind for p in signature.parameters.values()}
    problems = []
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        keywords = {k.arg for k in call.keywords if k.arg}
        problems = [f"{words}({name}=)" for name in sorted(keywords - signature.parameters.keys())]
    if not problems:
        try:
            signature.bind_partial(*call.args)
        except TypeError as error:
            problems.append(f"{words}: {error}")
    return problems


@pytest.fixture(scope="module")
def known() -> dict[str, Any]:
    return public()


@pytest.fixture(scope="module")
def methods(known: dict[str, Any]) -> set[str]:
    return {name for thing in known.values() if inspect.isclass(thing) for name in dir(thing)}


@pytest.mark.parametrize("page", [page for page, text in TEXTS.items() if BLOCK.search(text)])
def test_names_in_code_that_is_not_run_exist(page, known, methods):
    if page == "docs/torch.md":
        pytest.importorskip("torch")
    blocks = [textwrap.dedent(code) for _, code in BLOCK.findall(TEXTS[page])]
    # A block continues the blocks before it.
    local = defined(ast.parse("\n".join(blocks)))
    assert [name for code in blocks for name in missing(code, known, methods, local)] == []


PASTED = re.compile(r"^```(?:py(?:thon)?|\{code-cell\}.*)\n((?::.*\n)*)(.*?)^```$", re.M | re.S)


@pytest.mark.parametrize("page", [page for page, text in TEXTS.items() if BLOCK.search(text)])
def test_code_to_paste_imports_what_it_uses(page, known):
    """A reader has data and a model, but not our imports."""
    tree = ast.parse("\n".join(code for _, code in PASTED.findall(TEXTS[page])))
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    ours = {"daskdl", *known} - {"data", *VARIABLES, *dir(builtins)}
    assert used & ours - defined(tree) == set()


def test_missing_names_are_reported(known, methods):
    code = """
    from daskdl.train import Trainer, Learner
    with daskdl.connected("local") as client:
        Trainer(model, loss, Adam(rate=1)).fit(samples, client=client)
        nn.Conv2e(1)
        Convolution(3)
        samples.shuffled_by_day(3)
        print(len(samples), np.zeros(3), samples.map(f), x.numpy(), nn.Gelu, connect(1, 2))
    """
    code = textwrap.dedent(code)
    problems = missing(code, known, methods, defined(ast.parse(code)))
    assert sorted(name.split(":")[0] for name in problems) == [
        "Adam(rate=)", "Convolution()", "connect", "daskdl.connected", "daskdl.nn.Conv2e",
        "daskdl.nn.Gelu", "daskdl.train.Learner", "samples.shuffled_by_day()",
    ]  # fmt: skip


@pytest.mark.parametrize("page", sorted(TEXTS))
def test_dotted_names_in_the_text_exist(page):
    lost = []
    for name in sorted(set(DOTTED.findall(TEXTS[page]))):
        if FILES.search(name) or name.split(".")[1] in SETTINGS["daskdl"]:
            continue
        if name.startswith("daskdl.torch"):
            pytest.importorskip("torch")
        try:
            resolved(name)
        except (LookupError, ValueError) as error:
            lost.append(str(error))
    assert lost == []


@pytest.mark.parametrize("page", sorted(TEXTS))
def test_files_in_the_text_exist(page):
    cited = re.findall(r"`((?:daskdl|nowcast|ci|tests|examples)/[\w/.]+\.\w+)", TEXTS[page])
    assert [path for path in sorted(set(cited)) if not (ROOT / path).is_file()] == []


LINK = re.compile(r"\]\(<?((?!\w+:)[^()<>#\s]*)(?:#([^()<>\s]+))?>?\)")
LINKING = [*sorted(TEXTS), "CHANGELOG.md"]


def anchors(text: str) -> set[str]:
    """Return the fragments of a page: its headings down to ###, as GitHub and MyST write them."""
    prose = re.sub(r"^( *)(```|~~~).*?^\1\2$", "", text, flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#{1,3} +(.*?) *$", prose, re.MULTILINE)
    slugs = [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]
    repeats = [slugs[:i].count(slug) for i, slug in enumerate(slugs)]
    return {f"{slug}-{n}" if n else slug for slug, n in zip(slugs, repeats, strict=True)}


def dead_links(page: Path) -> list[str]:
    """Return the links of a page to files that do not exist, or to headings that a page lacks."""
    dead = []
    for path, fragment in dict.fromkeys(LINK.findall(page.read_text(encoding="utf-8"))):
        target = (page.parent / path).resolve() if path else page
        made = any(folder in target.parents for folder in docs.MADE)
        if not made and not target.exists():
            dead.append(f"{path}: no such file")
        elif fragment and target.suffix == ".md" and not made:
            known = anchors(target.read_text(encoding="utf-8"))
            if fragment not in known:
                near = difflib.get_close_matches(fragment, known, 1, 0) or ["none"]
                dead.append(f"{path}#{fragment}: no such heading; the nearest is #{near[0]}")
    return dead


@pytest.mark.parametrize("page", LINKING)
def test_links_lead_to_files_and_headings(page):
    assert dead_links(ROOT / page) == []


def test_dead_links_are_reported(tmp_path):
    (tmp_path / "other.md").write_text(
        "# Others' words\n\n## Speed\n\n```sh\n# Not one\n```\n\n## Speed\n"
    )
    links = ["other.md", "other.md#others-words", "other.md#speed-1", "#here", "https://a.b/c#d"]
    dead = ["lost.md", "other.md#not-one", "other.md#speed-2", "#there"]
    page = tmp_path / "page.md"
    page.write_text("# Here\n\n" + "\n".join(f"[x]({link})" for link in [*links, *dead]))
    assert [problem.split(":")[0] for problem in dead_links(page)] == dead
