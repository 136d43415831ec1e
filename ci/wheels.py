"""Build the wheel, install it in fresh environments, and use it: python -m ci.wheels.

For each Python of 3.11 to 3.13 that uv (``pip install uv``) finds here: in an environment with only
the wheel and its requirements, a network trains in the process and on two workers, to the same
bits, and is saved, read and shown; both command lines run. Prints packages and megabytes of each
environment without pip: 47 and 514 MB with Python 3.11.7, 45 and 465 MB with 3.12.1, 45 and 463 MB
with 3.13.0.
"""

from __future__ import annotations

import argparse
import os
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


def main() -> int:
    """Build the wheel and try it with each Python."""
    parser = argparse.ArgumentParser(prog="python -m ci.wheels", description=__doc__)
    parser.add_argument("versions", nargs="*", default=list(VERSIONS), help="such as 3.12")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="daskdl-wheels-") as name:
        folder = Path(name)
        run(folder, "uv", "build", "-q", "--wheel", "--out-dir", name, ROOT)
        (wheel,) = folder.glob("*.whl")
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB", flush=True)
        for version in asked.versions:
            find = ["uv", "python", "find", "--no-python-downloads", version]
            if subprocess.run(find, capture_output=True, check=False).returncode:
                print(f"Python {version}: not here", flush=True)
            else:
                print(f"Python {version}: {tried(version, wheel, folder)}", flush=True)
    return 0


def tried(version: str, wheel: Path, folder: Path) -> str:
    """Install the wheel in a fresh environment, use it, and return a summary."""
    home, use, model = folder / version, folder / "use.py", folder / f"{version}.safetensors"
    use.write_text(USE)
    bin = home / "bin"
    run(folder, "uv", "venv", "-q", "--python", version, home)
    # As pip does, which the sizes of docs/measurements/install.md are of.
    install = ["uv", "pip", "install", "-q", "--compile-bytecode", "--python", bin / "python"]
    run(folder, *install, wheel)
    run(folder, bin / "python", use, model)
    for command in (("daskdl", "show", model), ("daskdl", "--version"), ("nowcast", "--help")):
        run(folder, bin / command[0], *command[1:])
    (site,) = (home / "lib").glob("python*/site-packages")
    kilobytes = run(folder, "du", "-skc", *site.iterdir()).splitlines()[-1].split()[0]
    packages = len([*site.glob("*.dist-info")]) - 1
    return f"same bits, {packages} packages and daskdl, {int(kilobytes) / 1024:.0f} MB"


def run(folder: Path, *command: str | Path) -> str:
    """Run a command in a folder and return its output; its failure ends the program."""
    variables = {n: v for n, v in os.environ.items() if n not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{command[0]} failed\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
