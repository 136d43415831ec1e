"""Run tests against the oldest versions that pyproject.toml promises, in a fresh environment.

Every bound ``>=`` becomes ``==``; dependencies of these packages come in their newest version that
fits. Wheels only: old releases that have to be compiled are not supported.
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
#: Extras to install, with the extras that they name.
EXTRAS = ("test", "hpc")
OF_NOWCAST = ("nowcast", "grib", "geotiff")
#: Tests that run by default, of modules that use internals of other packages.
TESTS = {
    False: (
        "tests/daskdl/compat",
        "tests/daskdl/collective",
        "tests/daskdl/cluster/test_client.py",
        "tests/daskdl/data/sources/test_lazy_collections.py",
        "tests/daskdl/train/engines/test_engines.py",
        "tests/daskdl/train/gang/test_gang.py",
        "tests/daskdl/train/engines/test_inprocess.py",
        "tests/daskdl/train/fit/test_checkpoint.py",
    ),
    True: ("tests/nowcast/rain", "tests/nowcast/radar", "tests/nowcast/ingest"),
}
#: Warnings of old versions: of pyproj for a grid of one cell, which is an error in newer numpy, and
#: of netCDF4 that was compiled for a newer numpy.
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
        Extras of the project that they name are followed.
    without : tuple of str
        Extras that are not followed.
    """
    optional, waiting = project["optional-dependencies"], [*extras]
    lines = [*project["dependencies"]]
    while waiting:
        for line in optional[waiting.pop(0)]:
            match = re.fullmatch(rf"{project['name']}\[([a-z,]+)\]", line)
            if match:
                waiting += [extra for extra in match[1].split(",") if extra not in without]
            else:
                lines.append(line)
    return lines


def oldest(lines: list[str]) -> list[str]:
    """Return each package pinned to its lower bound, or to the highest of several.

    Raises
    ------
    ValueError
        When a requirement has no lower bound.
    """
    pins: dict[str, tuple[tuple[int, ...], str]] = {}
    for line in lines:
        match = _REQUIREMENT.match(line)
        if match is None:
            raise ValueError(
                f"pyproject.toml: expected a lower bound such as numpy>=2.2, found {line!r}; "
                "give it the oldest version with which the tests pass"
            )
        name, extra, bound = match.groups()
        number = tuple(int(part) for part in bound.split("."))
        pins[name] = max(pins.get(name, ((), "")), (number, f"{name}{extra or ''}=={bound}"))
    return [version for _, version in pins.values()]


def main(arguments: list[str]) -> int:
    """Make the environment, run the tests in it, and return pytest's exit code."""
    parser = argparse.ArgumentParser(prog="python -m ci.oldest", description=__doc__)
    parser.add_argument("--list", action="store_true", help="only print the versions")
    parser.add_argument("--nowcast", action="store_true", help="tests of nowcast, with its extra")
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
