"""The conda recipe asks for what pyproject.toml asks for, and has the package's version."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

import daskdl

ROOT = Path(__file__).resolve().parents[2]
#: What one requirement with an extra is called there.
SPLIT = {"dask": ("dask-core", "distributed")}
#: What takes the place of a wheel that conda does not have.
INSTEAD = {"scipy-openblas32": "scipy >=1.15"}


def test_recipe_follows_pyproject():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {f"python {project['requires-python']}"}
    for requirement in map(Requirement, project["dependencies"]):
        if requirement.name in INSTEAD:
            wanted.add(INSTEAD[requirement.name])
            continue
        for name in SPLIT.get(requirement.name, (requirement.name,)):
            wanted.add(f"{name} {requirement.specifier}")
    recipe = yaml.safe_load((ROOT / "ci" / "conda" / "recipe.yaml").read_text())
    assert set(recipe["requirements"]["run"]) == wanted
    assert recipe["context"]["version"] == daskdl.__version__
    points = dict(point.split(" = ") for point in recipe["build"]["python"]["entry_points"])
    assert points == project["scripts"]


def test_rattler_build_takes_the_recipe():
    """By its own parser and renderer (``pip install py-rattler-build``), without building."""
    build = pytest.importorskip("rattler_build")
    text = (ROOT / "ci" / "conda" / "recipe.yaml").read_text()
    (variant,) = build.Stage0Recipe.from_yaml(text).render(build.VariantConfig())
    assert variant.recipe.package.version == daskdl.__version__
    with pytest.raises(build.RattlerBuildError, match="unknown"):
        build.Stage0Recipe.from_yaml(text.replace("requirements:", "requirement:", 1))
