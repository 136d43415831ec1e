"""Run tests against the oldest versions that pyproject.toml promises, in a fresh environment.

uv (``pip install uv``) installs the lowest version of each requirement, and the newest ones that
fit of what these need. Wheels only: old releases that have to be compiled are not supported.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Extras to install, with the extras that they name.
EXTRAS = ("test", "hpc")
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


def main(arguments: list[str]) -> int:
    """Make the environment, run the tests in it, and return pytest's exit code."""
    parser = argparse.ArgumentParser(prog="python -m ci.oldest", description=__doc__)
    parser.add_argument("--nowcast", action="store_true", help="tests of nowcast")
    parser.add_argument("tests", nargs="*", help="run these instead, by pytest")
    asked = parser.parse_args(arguments)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    version = settings["project"]["requires-python"].removeprefix(">=")
    extras = [f"--extra={extra}" for extra in EXTRAS]
    with tempfile.TemporaryDirectory(prefix="daskdl-oldest-") as folder:
        python = str(Path(folder) / "bin" / "python")
        subprocess.run(["uv", "venv", "-q", "--python", version, folder], check=True)
        install = ["uv", "pip", "install", "-q", "--python", python, "--only-binary=:all:"]
        install += ["--resolution=lowest-direct", "-r", "pyproject.toml", *extras]
        subprocess.run(install, cwd=ROOT, check=True)
        # The checkout itself is imported from where it is, also by the workers' processes.
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [python, "-m", "pytest", "-q", *IGNORED, *(asked.tests or TESTS[asked.nowcast])]
        return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
