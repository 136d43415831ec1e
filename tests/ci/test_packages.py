"""Packages: the oldest versions that are promised, and the conda recipe."""

from __future__ import annotations

import tomllib
from itertools import chain
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

import daskdl
from ci import oldest

ROOT = Path(__file__).resolve().parents[2]
#: Conda's packages of requirements that have an extra.
SPLIT = {"dask": ("dask-core", "distributed")}


def test_every_requirement_has_a_lower_bound() -> None:
    """Without one, the run of the oldest versions would take a release of many years ago."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = chain(project["dependencies"], *project["optional-dependencies"].values())
    others = [r for r in map(Requirement, lines) if r.name != project["name"]]
    assert len(others) > 50
    bounds = {str(r): {one.operator for one in r.specifier} & {">=", "=="} for r in others}
    assert [text for text, found in bounds.items() if not found] == []


def test_the_tests_that_are_run_exist() -> None:
    for names in oldest.TESTS.values():
        assert not [name for name in names if not (oldest.ROOT / name).exists()]


def test_every_extra_is_known() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert {*oldest.EXTRAS} <= tomllib.loads(text)["project"]["optional-dependencies"].keys()


def test_recipe_follows_pyproject():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {f"python {project['requires-python']}"}
    for requirement in map(Requirement, project["dependencies"]):
        for name in SPLIT.get(requirement.name, (requirement.name,)):
            wanted.add(f"{name} {requirement.specifier}")
    recipe = yaml.safe_load((ROOT / "ci" / "conda" / "recipe.yaml").read_text())
    assert set(recipe["requirements"]["run"]) == wanted
    assert recipe["context"]["version"] == daskdl.__version__
    points = dict(point.split(" = ") for point in recipe["build"]["python"]["entry_points"])
    assert points == project["scripts"]


def test_rattler_build_takes_the_recipe():
    """Its parser and renderer (``pip install py-rattler-build``) read it; nothing is built."""
    build = pytest.importorskip("rattler_build")
    text = (ROOT / "ci" / "conda" / "recipe.yaml").read_text()
    (variant,) = build.Stage0Recipe.from_yaml(text).render(build.VariantConfig())
    assert variant.recipe.package.version == daskdl.__version__
    with pytest.raises(build.RattlerBuildError, match="unknown"):
        build.Stage0Recipe.from_yaml(text.replace("requirements:", "requirement:", 1))
