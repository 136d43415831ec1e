"""Checkpoints on a disk that is full, read-only, or damages files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from distributed import Client

from daskdl.errors import CheckpointError
from daskdl.train import Trainer
from tests.daskdl.train.runs import Do, digest, fit, interrupt, iterations_in, problem
from tests.disks import fill, remount, small_disk

pytestmark = pytest.mark.usefixtures("short_groups")


@pytest.fixture
def engine() -> str:
    """The driver writes, whatever the engine; one test uses both."""
    return "gang"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A separate disk with room for some checkpoints."""
    with small_disk(tmp_path / "disk", "128k") as path:
        yield path


@pytest.fixture
def run(client: Client, engine: str) -> Callable[..., Trainer]:
    """Return a function that runs the same command again and again."""

    def run(folder: Path, *callbacks: Do) -> Trainer:
        options = {"checkpoint": folder, "checkpoint_every": 3, "callbacks": callbacks}
        return fit(problem(), client=client, engine=engine, **options)

    return run


def names(folder: Path) -> list[str]:
    """Return the names in a folder, without the lock of a fit."""
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock")


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["graph", "gang"])
def test_a_full_disk_ends_the_run_which_goes_on_when_there_is_room(disk, run, undisturbed):
    folder, filling = disk / "run", Do(10, lambda: fill(disk))
    with pytest.raises(CheckpointError) as raised:
        run(folder, filling)
    assert filling.done
    sentence = str(raised.value)
    assert sentence.startswith(f"{folder / 'step-0000000012'}: ")
    assert "No space left on device" in sentence
    assert sentence.endswith("run again: it goes on from step-0000000009")
    assert "\n" not in sentence
    assert names(folder) == ["step-0000000007", "step-0000000009"]  # nothing half-written
    (disk / "of another").unlink()
    assert digest(run(folder)) == undisturbed


@pytest.mark.slow
def test_a_disk_that_becomes_read_only_ends_the_run_which_goes_on_later(disk, run, undisturbed):
    folder = disk / "run"
    with pytest.raises(CheckpointError, match=r"step-0000000012: .*Read-only file system"):
        run(folder, Do(10, lambda: remount(disk, "ro")))
    with pytest.raises(CheckpointError, match=r"run: .*cannot be written .*Read-only file system"):
        run(folder)  # known at once
    remount(disk, "rw")
    assert names(folder) == ["step-0000000007", "step-0000000009"]
    assert digest(run(folder)) == undisturbed


@pytest.mark.slow
def test_a_folder_that_is_taken_away_ends_the_run_which_goes_on_when_it_is_back(
    tmp_path, run, undisturbed
):
    folder, away = tmp_path / "run", tmp_path / "away"

    def take_away():
        folder.rename(away)
        folder.touch()

    with pytest.raises(CheckpointError, match=r"step-0000000012: .*Not a directory.*run again"):
        run(folder, Do(10, take_away))
    folder.unlink()
    away.rename(folder)
    assert digest(run(folder)) == undisturbed


def test_a_truncated_checkpoint_is_reported_and_the_one_before_taken(
    tmp_path, run, undisturbed, caplog
):
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, Do(13, interrupt))
    assert iterations_in(tmp_path) == [12, 13]
    last = tmp_path / "step-0000000013" / "state.safetensors"
    os.truncate(last, last.stat().st_size // 2)
    with caplog.at_level("WARNING", "daskdl"):
        trainer = run(tmp_path)
    assert "step-0000000013 (state.safetensors: " in caplog.text
    assert "going on from step-0000000012" in caplog.text
    assert digest(trainer) == undisturbed
    assert len(trainer.history) == 21
