"""Packages: the oldest versions that are promised, and the conda recipe."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

import daskdl
from ci import oldest

PROJECT = {
    "name": "ours",
    "dependencies": ["a[x,y]>=1.2", "b>=3,<4"],
    "optional-dependencies": {
        "more": ["b>=3.10", "c==2.1; platform_machine == 'x86_64'"],
        "less": ["d>=1"],
        "test": ["ours[more,less]", "e>=5"],
    },
}


def test_lower_bounds_are_the_only_versions_and_the_highest_of_several() -> None:
    lines = oldest.requirements(PROJECT, ("test",))
    assert sorted(oldest.oldest(lines)) == ["a[x,y]==1.2", "b==3.10", "c==2.1", "d==1", "e==5"]


def test_extras_may_be_left_out() -> None:
    lines = oldest.requirements(PROJECT, ("test",), without=("more",))
    assert sorted(oldest.oldest(lines)) == ["a[x,y]==1.2", "b==3", "d==1", "e==5"]


def test_a_requirement_without_a_lower_bound_is_refused() -> None:
    with pytest.raises(ValueError, match=r"expected a lower bound .* found 'a<3'; give it"):
        oldest.oldest(["a<3"])


@pytest.mark.parametrize("arguments", [["--list"], ["--list", "--nowcast"]])
def test_every_requirement_of_ours_has_a_lower_bound(arguments, capsys) -> None:
    assert oldest.main(arguments) == 0
    pins = capsys.readouterr().out.split()
    assert any(line.startswith("dask[distributed]==") for line in pins)
    assert any(line.startswith("xradar==") for line in pins) == ("--nowcast" in arguments)


def test_the_tests_that_are_run_exist() -> None:
    for names in oldest.TESTS.values():
        assert not [name for name in names if not (oldest.ROOT / name).exists()]


def test_every_extra_is_known() -> None:
    text = (oldest.ROOT / "pyproject.toml").read_text(encoding="utf-8")
    extras = tomllib.loads(text)["project"]["optional-dependencies"]
    assert {*oldest.EXTRAS, *oldest.OF_NOWCAST} <= extras.keys()


ROOT = Path(__file__).resolve().parents[2]
#: Conda's packages of requirements that have an extra.
SPLIT = {"dask": ("dask-core", "distributed")}


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
