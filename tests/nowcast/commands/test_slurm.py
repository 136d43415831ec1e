"""Jobs of Slurm: a cancelled job loses nothing; a watch hands over to the next job."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from nowcast.forecasters.file import open_forecast
from nowcast.rain.store import open_rain, write_zarr
from nowcast.simulate import simulate
from nowcast.simulate.radar import Radar
from tests.daskdl.test_slurm import has_slurm
from tests.nowcast.model.test_train import write_store
from tests.nowcast.stores import moving_rain, translation

pytestmark = [
    pytest.mark.kills,
    pytest.mark.skipif(not has_slurm(), reason="needs a Slurm: run it by ci/slurm.sh"),
]
NOWCAST = [sys.executable, "-c", "from nowcast.cli import main; main()"]
LIMIT = 240.0


def wait(there, condition: str) -> None:
    end = time.monotonic() + LIMIT
    while not there():
        assert time.monotonic() < end, f"no {condition} after {LIMIT:g} s"
        time.sleep(0.1)


def submit(folder: Path, *options: str, script: list[str]) -> str:
    command = ["sbatch", "--parsable", f"--chdir={folder}", f"--output={folder}/log", *options]
    return subprocess.run(
        [*command, *script], check=True, capture_output=True, text=True
    ).stdout.strip()


def state(job: str) -> str:
    shown = ["squeue", "--noheader", "--format=%T", f"--job={job}"]
    return subprocess.run(shown, check=False, capture_output=True, text=True).stdout.strip()


def job_of(folder: Path, arguments: list[str]) -> str:
    path = folder / "job.sh"
    words = " ".join(f"'{word}'" for word in [*NOWCAST, *arguments])
    path.write_text(f"#!/bin/sh\nexec {words}\n")
    return submit(folder, script=[str(path)])


def fields(paths) -> list[bytes]:
    made = []
    for path in paths:
        with (open_rain if path.suffix == ".zarr" else open_forecast)(path) as dataset:
            made.append(dataset["rain_rate"].values.tobytes())
    return made


def scores_of(out: Path) -> str:
    content = json.loads((out / "verify.json").read_text())
    return json.dumps({name: content[name] for name in content if name != "attrs"}, sort_keys=True)


def weights(out: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(out.glob("*.safetensors"))]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    radar = Radar(gates=120, elevations=(0.5,))
    simulate(folder / "scans", hours=10, step_minutes=5, radar=radar)
    write_zarr(moving_rain(), folder / "rain.zarr")
    write_store(folder / "train.zarr", translation(40, 0, 3, 48))
    return folder


TRAIN = ["starts=2", "draws=2", "cells=16", "fractions=[0.6, 0.2]", "shards=2"]
COMMANDS = {
    "ingest": (["ingest", "scans", "--size", "64", "--spacing", "2000"], "out.zarr",
               lambda out: fields([out]), lambda out: (out / "zarr.json").exists()),
    "predict": (["predict", "rain.zarr", "--method", "sprog", "--from", "2020-06-01T01:00"], "out",
                lambda out: fields(sorted(out.glob("*.nc"))), lambda out: any(out.glob("*.nc"))),
    "verify": (["verify", "rain.zarr", "--lead", "30min"], "out", scores_of, Path.exists),
    "train": (["train", "train.zarr", "--lead", "20min", "--epochs", "3", "--workers", "1",
               "--no-progress", *(part for one in TRAIN for part in ("--set", one))], "out",
              weights, Path.exists),
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_a_cancelled_job_loses_nothing(name, inputs, tmp_path):
    arguments, out, digest, begun = COMMANDS[name]
    arguments = [str(inputs / a) if (inputs / a).exists() else a for a in arguments]
    done = []
    for folder, cancelled in ((tmp_path / "whole", False), (tmp_path / "cancelled", True)):
        folder.mkdir()
        job = job_of(folder, [*arguments, "--out", str(folder / out)])
        if cancelled:
            wait(lambda folder=folder: begun(folder / out), "output")
            subprocess.run(["scancel", job], check=True)
            wait(lambda job=job: not state(job), "end")
            job = job_of(folder, [*arguments, "--out", str(folder / out)])
        wait(lambda job=job: not state(job), "end")
        done.append(digest(folder / out))
        assert done[-1], (folder / "log").read_text()
    assert done[0] == done[1]


def test_a_watch_hands_over_to_the_next_job(inputs, tmp_path):
    """The batch script of the docs; the test sends Slurm's signal before the walltime itself."""
    script = tmp_path / "watch.sbatch"
    text = Path(__file__).parents[3].joinpath("docs/howto/watch.sbatch").read_text()
    for whole, part in (
        ("exec nowcast", f"exec {sys.executable} -m nowcast"), ("--begin=now+60", ""),
        ("--mem=4G", "--mem=1G"), ("nowcast-watch.log", str(tmp_path / "log")),
    ):  # fmt: skip
        assert whole in text
        text = text.replace(whole, part)
    script.write_text(text.replace("-m nowcast", f"-c '{NOWCAST[2]}'"))
    scans, arriving = sorted((inputs / "scans").iterdir())[:6], tmp_path / "in"
    arriving.mkdir()
    office = tmp_path / "office.yaml"
    office.write_text(
        f"source: {arriving}\nout: {tmp_path}/out\nmethod: extrapolation\ninterval: 0.3\n"
        "ingest: {size: 64, spacing: 2000}\n"
    )

    def latest():
        try:
            return json.loads((tmp_path / "out" / "latest.json").read_text())["start"]
        except FileNotFoundError:
            return ""

    def arrive(*paths):
        for path in paths:
            copy = arriving / f".{path.name}"
            copy.write_bytes(path.read_bytes())
            os.utime(copy, (1e9, 1e9))
            copy.rename(arriving / path.name)

    try:
        first = submit(tmp_path, script=[str(script), str(office)])
        arrive(*scans[:2])
        wait(lambda: latest() == "2020-06-01T00:05Z", "forecast")
        assert "PENDING" in state(str(int(first) + 1))  # it waits already
        subprocess.run(["scancel", "--batch", "--signal=TERM", first], check=True)
        wait(lambda: not state(first), "end of the first job")
        assert "the same command goes on from here" in (tmp_path / "log").read_text()
        wait(lambda: state(str(int(first) + 1)) == "RUNNING", "second job")
        arrive(scans[2])
        wait(lambda: latest() == "2020-06-01T00:10Z", "forecast of the second job")
        subprocess.run(["scancel", "--signal=KILL", str(int(first) + 1)], check=True)
        arrive(*scans[3:])  # a lost node: the third job takes over
        wait(lambda: latest() == "2020-06-01T00:25Z", "forecast of the third job")
        with open_rain(tmp_path / "out" / "rain.zarr") as rain:
            assert np.diff(rain["time"].values).tolist() == [300_000_000_000] * 5
    finally:
        subprocess.run(["scancel", "--name=nowcast-watch"], check=True)
