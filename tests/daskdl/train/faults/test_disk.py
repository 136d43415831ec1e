"""Checkpoints on a disk that is full, read-only, or damages files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from distributed import Client

from daskdl.errors import CheckpointError
from daskdl.train import Trainer
from tests.daskdl.train.runs import Do, digest, fit, iterations_in, problem
from tests.disks import fill, remount, small_disk

pytestmark = pytest.mark.usefixtures("short_groups")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A separate disk with room for some checkpoints."""
    with small_disk(tmp_path / "disk", "128k") as path:
        yield path


@pytest.fixture
def run(client: Client) -> Callable[..., Trainer]:
    """Return a function that runs the same command again and again."""

    def run(folder: Path, *callbacks: Do, engine: str = "gang") -> Trainer:
        options = {"checkpoint": folder, "checkpoint_every": 3, "callbacks": callbacks}
        return fit(problem(), client=client, engine=engine, **options)

    return run


def take_away(disk: Path) -> None:
    (disk / "run").rename(disk / "away")
    (disk / "run").touch()


def put_back(disk: Path) -> None:
    (disk / "run").unlink()
    (disk / "away").rename(disk / "run")


READ_ONLY = partial(remount, how="ro"), partial(remount, how="rw")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "harm", "repair", "reason"),
    [
        # The driver writes, whatever the engine.
        ("graph", fill, lambda disk: (disk / "of another").unlink(), "No space left on device"),
        ("gang", fill, lambda disk: (disk / "of another").unlink(), "No space left on device"),
        ("gang", *READ_ONLY, "Read-only file system"),
        ("gang", take_away, put_back, "Not a directory"),
    ],
)
def test_a_disk_that_fails_ends_the_run_which_goes_on_when_it_works(
    disk, run, undisturbed, engine, harm, repair, reason
):
    folder, harming = disk / "run", Do(10, lambda: harm(disk))
    with pytest.raises(CheckpointError) as raised:
        run(folder, harming, engine=engine)
    assert harming.done
    sentence = str(raised.value)
    assert sentence.startswith(f"{folder / 'step-0000000012'}: ")
    assert reason in sentence
    again = "the last checkpoint that is there then" if harm is take_away else "step-0000000009"
    assert sentence.endswith(f"run again: it goes on from {again}")
    assert "\n" not in sentence
    if harm is READ_ONLY[0]:  # known at once
        with pytest.raises(CheckpointError, match=f"run: .*cannot be written .*{reason}"):
            run(folder)
    repair(disk)
    names = sorted(path.name for path in folder.iterdir() if path.name != ".lock")
    assert names == ["step-0000000007", "step-0000000009"]  # nothing half-written
    assert digest(run(folder, engine=engine)) == undisturbed


def test_a_truncated_checkpoint_is_reported_and_the_one_before_taken(
    tmp_path, run, undisturbed, caplog
):
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, Do(13))
    assert iterations_in(tmp_path) == [12, 13]
    last = tmp_path / "step-0000000013" / "state.safetensors"
    os.truncate(last, last.stat().st_size // 2)
    with caplog.at_level("WARNING", "daskdl"):
        trainer = run(tmp_path)
    assert "step-0000000013 (state.safetensors: " in caplog.text
    assert "going on from step-0000000012" in caplog.text
    assert digest(trainer) == undisturbed
    assert len(trainer.history) == 21
