"""Checkpoint: a folder that holds the last two states of a run, each whole or not there."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import daskdl
from daskdl.errors import CheckpointError

logger = logging.getLogger(__name__)

FORMAT = "daskdl-checkpoint-1"
KEEP = 2
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Saved:
    """What one checkpoint holds.

    Parameters
    ----------
    iteration : int
        Iterations done; with the batch size this is the position in the data.
    identity : mapping
        What a run must have in common to go on from here.
    arrays : mapping
        Weights, state of the optimizer and of callbacks, history.
    more : mapping
        Plain data beside them.
    """

    iteration: int
    identity: Mapping[str, Any]
    arrays: Arrays
    more: Mapping[str, Any]


class CheckpointFolder:
    """The checkpoints of a run.

    ``step-<iteration>/`` holds state.safetensors and manifest.json, which is written last and has
    the sha256 of the other. A checkpoint is written beside and renamed.

    Parameters
    ----------
    path : path
        Made if it is not there.

    Raises
    ------
    CheckpointError
        When nothing can be written there.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CheckpointError(
                f"{path}: expected a folder for checkpoints, found it cannot be made ({error})"
            ) from error

    def clear(self) -> None:
        """Remove all checkpoints."""
        for folder in self._steps():
            shutil.rmtree(folder)

    def write(self, saved: Saved) -> None:
        """Write a checkpoint and remove all but the last two.

        Raises
        ------
        CheckpointError
            When it cannot be written; earlier ones are still there.
        """
        from safetensors.numpy import save

        name = f"step-{saved.iteration:010d}"
        beside = self.path / f".{name}.{os.getpid()}"
        try:
            for left in self.path.glob(".step-*"):  # of a run that was killed while it wrote
                shutil.rmtree(left, ignore_errors=True)
            beside.mkdir()
            # Not ascontiguousarray, which makes (1,) of a scalar.
            arrays = {key: np.asarray(value, order="C") for key, value in saved.arrays.items()}
            state = save(arrays)
            manifest = {
                "format": FORMAT,
                "daskdl": daskdl.__version__,
                "iteration": saved.iteration,
                "identity": dict(saved.identity),
                "more": dict(saved.more),
                "sha256": {"state.safetensors": hashlib.sha256(state).hexdigest()},
            }
            _write(beside / "state.safetensors", state)
            _write(beside / "manifest.json", json.dumps(manifest, indent=1).encode())
            _sync(beside)
            if (self.path / name).exists():
                shutil.rmtree(self.path / name)
            beside.rename(self.path / name)
            _sync(self.path)
            for old in self._steps()[:-KEEP]:
                shutil.rmtree(old)
        except OSError as error:
            shutil.rmtree(beside, ignore_errors=True)
            raise CheckpointError(
                f"{self.path / name}: the checkpoint cannot be written ({error}); earlier ones "
                "are untouched"
            ) from error

    def read(self) -> Saved | None:
        """Return the newest whole checkpoint, None when there is none.

        Raises
        ------
        CheckpointError
            When there are checkpoints and none is whole.
        """
        problems = []
        for folder in reversed(self._steps()):
            try:
                saved = _read(folder)
            except (OSError, ValueError, KeyError) as error:
                problems.append(f"{folder.name}: {error}")
                continue
            for problem in problems:
                logger.warning(
                    "%s: not whole, going on from the one before it, %s", problem, folder.name
                )
            return saved
        if problems:
            raise CheckpointError(
                f"{self.path}: expected a whole checkpoint, found {'; '.join(problems)}; give "
                "another folder, or resume=False to begin anew"
            )
        return None

    def _steps(self) -> list[Path]:
        return sorted(p for p in self.path.glob("step-*") if p.is_dir())


def check_identity(path: Path, saved: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Raise a CheckpointError that names what differs."""
    different = [
        f"{name} {_short(wanted[name])}, found {_short(saved.get(name))}"
        for name in wanted
        if saved.get(name) != wanted[name]
    ]
    if different:
        raise CheckpointError(
            f"{path}: holds the checkpoint of another run: expected {'; expected '.join(different)}"
            "; give another folder, or resume=False to begin anew"
        )


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _read(folder: Path) -> Saved:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    manifest = json.loads((folder / "manifest.json").read_bytes())
    if manifest["format"] != FORMAT:
        raise ValueError(f"expected format {FORMAT}, found {manifest['format']!r}")
    state = (folder / "state.safetensors").read_bytes()
    if hashlib.sha256(state).hexdigest() != manifest["sha256"]["state.safetensors"]:
        raise ValueError(f"state.safetensors of {len(state)} bytes has another sha256")
    try:
        arrays = load(state)
    except SafetensorError as error:
        raise ValueError(str(error)) from error
    return Saved(manifest["iteration"], manifest["identity"], arrays, manifest["more"])


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
