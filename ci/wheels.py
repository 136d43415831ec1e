"""Build the wheel, install it in fresh environments, and use it: python -m ci.wheels.

For each Python of 3.11 to 3.13 on the PATH or among pyenv's versions: in an environment with only
the wheel and its requirements, a network trains in the process and on two workers, to the same
bits, and is saved, read and shown; both command lines run. Prints packages and megabytes of each
environment without pip: 47 and 514 MB with Python 3.11.7, 45 and 465 MB with 3.12.1, 45 and 463 MB
with 3.13.0.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ("3.11", "3.12", "3.13")
#: Program that runs in each environment.
USE = """
import sys, tempfile
import numpy as np
import daskdl
from daskdl import SampleSet, Trainer
from daskdl.nn import CrossEntropyLoss, Linear, ReLU, Sequential
from daskdl.optim import Adam

if __name__ == "__main__":
    x = np.random.default_rng(0).normal(size=(400, 20)).astype(np.float32)
    samples = SampleSet.from_arrays(x=x, y=(x[:, 0] > x[:, 1]).astype(np.int64), partitions=2)

    def fitted(client):
        model = Sequential(Linear(20, 32, seed=0), ReLU(), Linear(32, 2, seed=1))
        trainer = Trainer(model, CrossEntropyLoss(), Adam(0.01))
        trainer.fit(samples, epochs=2, batch_size=32, client=client, progress=False)
        return model

    here = fitted(None)
    with daskdl.connect("local", workers=2) as client:
        there = fitted(client)
    assert here.flat.tobytes() == there.flat.tobytes()
    daskdl.save(here, sys.argv[1])
    assert (daskdl.load(sys.argv[1]).predict(x) == here.predict(x)).all()
"""


def interpreters(wanted: list[str]) -> dict[str, str]:
    """Return the paths of installed Pythons by version."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    paths = {}
    for version in wanted:
        here = [str(p / "bin" / "python") for p in sorted(pyenv.glob(f"{version}.*"), reverse=True)]
        if path := next(iter(here), None) or shutil.which(f"python{version}"):
            paths[version] = path
    return paths


def main() -> int:
    """Build the wheel and try it with each Python."""
    parser = argparse.ArgumentParser(prog="python -m ci.wheels", description=__doc__)
    parser.add_argument("versions", nargs="*", default=list(VERSIONS), help="such as 3.12")
    asked = parser.parse_args()
    paths = interpreters(asked.versions)
    for version in asked.versions:
        if version not in paths:
            print(f"Python {version}: not here", flush=True)
    with tempfile.TemporaryDirectory(prefix="daskdl-wheels-") as name:
        folder = Path(name)
        pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", name, str(ROOT)]
        subprocess.run(pip, check=True)
        (wheel,) = folder.glob("*.whl")
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB", flush=True)
        for version, python in paths.items():
            print(f"Python {version}: {tried(version, python, wheel, folder)}", flush=True)
    return 0


def tried(version: str, python: str, wheel: Path, folder: Path) -> str:
    """Install the wheel in a fresh environment, use it, and return a summary."""
    home, use = folder / version, folder / "use.py"
    use.write_text(USE)
    model = folder / f"{version}.safetensors"
    variables = {n: v for n, v in os.environ.items() if n not in ("PYTHONPATH", "VIRTUAL_ENV")}
    bin = home / "bin"

    def run(*command: str | Path) -> str:
        done = subprocess.run(
            [str(part) for part in command],
            cwd=folder, env=variables, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise SystemExit(f"Python {version}: {command[0]} failed\n{done.stdout}{done.stderr}")
        return done.stdout

    run(python, "-m", "venv", home)
    run(bin / "pip", "install", "-q", wheel)
    run(bin / "python", use, model)
    for command in (("daskdl", "show", model), ("daskdl", "--version"), ("nowcast", "--help")):
        run(bin / command[0], *command[1:])
    (site,) = (home / "lib").glob("python*/site-packages")
    installed = [p for p in site.iterdir() if p.name.partition("-")[0] not in ("pip", "setuptools")]
    kilobytes = run("du", "-skc", *installed).splitlines()[-1].split()[0]
    packages = sum(p.suffix == ".dist-info" for p in installed) - 1
    full = run(bin / "python", "-c", "import sys; print(sys.version.split()[0])").strip()
    return f"{full}, same bits, {packages} packages and daskdl, {int(kilobytes) / 1024:.0f} MB"


if __name__ == "__main__":
    sys.exit(main())
