"""Run tests against the oldest versions that pyproject.toml promises, in a fresh environment.

Every bound ``>=`` becomes ``==``; what these packages need themselves comes in its newest version
that fits. Wheels only: an old release that would have to be compiled is no promise.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
#: Extras that are installed; the extras that they name are, too.
EXTRAS = ("test", "hpc")
OF_NOWCAST = ("nowcast", "grib", "geotiff")
#: Tests that are run unless others are named: of what reaches deepest into other packages.
TESTS = {
    False: (
        "tests/daskdl/compat",
        "tests/daskdl/collective",
        "tests/daskdl/cluster/test_client.py",
        "tests/daskdl/data/sources/test_lazy_collections.py",
        "tests/daskdl/train/engines/test_engines.py",
        "tests/daskdl/train/gang/test_gang.py",
        "tests/daskdl/train/engines/test_both.py",
        "tests/daskdl/train/engines/test_inprocess.py",
        "tests/daskdl/train/fit/test_checkpoint.py",
    ),
    True: ("tests/nowcast/rain", "tests/nowcast/radar", "tests/nowcast/ingest"),
}
#: What pyproj lets numpy say of a grid of one cell, before numpy made an error of it; and netCDF4,
#: compiled for a newer numpy, of its size.
IGNORED = (
    "-Wignore:Conversion of an array with ndim > 0:DeprecationWarning",
    "-Wignore:numpy.ndarray size changed:RuntimeWarning",
)
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(\[[a-z,]+\])?\s*[>=]=\s*([0-9][0-9.]*)")


def requirements(
    project: dict[str, Any], extras: tuple[str, ...] = EXTRAS, without: tuple[str, ...] = ()
) -> list[str]:
    """Return the requirements of a project and of some of its extras.

    Parameters
    ----------
    project : dict
        The table ``project`` of pyproject.toml.
    extras : tuple of str
        Where one names other extras of the project, these are followed.
    without : tuple of str
        Extras that are left out wherever they are named.
    """
    optional, found, waiting = project["optional-dependencies"], project["dependencies"], [*extras]
    found = [*found]
    while waiting:
        for line in optional[waiting.pop(0)]:
            own = re.fullmatch(rf"{project['name']}\[([a-z,]+)\]", line)
            if own:
                waiting += [extra for extra in own[1].split(",") if extra not in without]
            else:
                found.append(line)
    return found


def oldest(lines: list[str]) -> list[str]:
    """Return for each package its lower bound, the highest of several, as the only version.

    Raises
    ------
    ValueError
        When a requirement has no lower bound.
    """
    found: dict[str, tuple[tuple[int, ...], str]] = {}
    for line in lines:
        match = _REQUIREMENT.match(line)
        if match is None:
            raise ValueError(
                f"pyproject.toml: expected a lower bound such as numpy>=2.2, found {line!r}; "
                "give it the oldest version with which the tests pass"
            )
        name, extra, bound = match.groups()
        number = tuple(int(part) for part in bound.split("."))
        found[name] = max(found.get(name, ((), "")), (number, f"{name}{extra or ''}=={bound}"))
    return [version for _, version in found.values()]


def main(arguments: list[str]) -> int:
    """Make the environment, run the tests in it, and return pytest's exit code."""
    parser = argparse.ArgumentParser(prog="python -m ci.oldest", description=__doc__)
    parser.add_argument("--list", action="store_true", help="print the versions, and that is all")
    parser.add_argument("--nowcast", action="store_true", help="with the extra nowcast, its tests")
    parser.add_argument("tests", nargs="*", help="run these instead, by pytest")
    asked = parser.parse_args(arguments)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    versions = oldest(requirements(project, without=() if asked.nowcast else OF_NOWCAST))
    if asked.list:
        print("\n".join(versions))
        return 0
    wanted = project["requires-python"].removeprefix(">=")
    if not sys.version.startswith(f"{wanted}."):
        print(f"this is Python {sys.version.split()[0]}; {wanted} is the oldest", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="daskdl-oldest-") as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / "bin" / "python")
        pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        subprocess.run([*pip, "--only-binary", ":all:", *versions], check=True)
        # The checkout itself is imported from where it is, also by the workers' processes.
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [python, "-m", "pytest", "-q", *IGNORED, *(asked.tests or TESTS[asked.nowcast])]
        return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
