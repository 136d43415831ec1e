"""Checkpoint: a folder that holds the last two states of a run, each whole or not there."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import CheckpointError
from daskdl.version import __version__

logger = logging.getLogger(__name__)

FORMAT = "daskdl-checkpoint-1"
KEEP = 2
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Saved:
    """Contents of one checkpoint.

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
            with tempfile.TemporaryFile(dir=self.path):  # rather now than after hours
                pass
        except OSError as error:
            raise CheckpointError(
                f"{path}: expected a folder to write checkpoints to, found that it cannot be "
                f"written ({error}); name another, or free it"
            ) from error

    def clear(self) -> None:
        """Remove all checkpoints.

        Raises
        ------
        CheckpointError
            When they cannot be removed.
        """
        try:
            for folder in self._steps():
                shutil.rmtree(folder)
        except OSError as error:
            raise CheckpointError(
                f"{self.path}: its checkpoints cannot be removed ({error}); give another folder"
            ) from error

    def write(self, saved: Saved) -> None:
        """Write a checkpoint and remove all but the last two.

        Raises
        ------
        CheckpointError
            When it cannot be written; earlier ones are still there.
        """
        name = f"step-{saved.iteration:010d}"
        beside, aside = (self.path / f".{name}.{os.getpid()}{end}" for end in ("", ".old"))
        state, manifest = self._encoded(saved, name)
        try:
            for left in self.path.glob(".step-*"):  # of a run that was killed while it wrote
                shutil.rmtree(left, ignore_errors=True)
            beside.mkdir()
            _write(beside / "state.safetensors", state)
            _write(beside / "manifest.json", manifest)
            _sync(beside)
            if (self.path / name).exists():
                (self.path / name).rename(aside)
            beside.rename(self.path / name)
            _sync(self.path)
            shutil.rmtree(aside, ignore_errors=True)
            for old in self._steps()[:-KEEP]:
                shutil.rmtree(old)
        except OSError as error:
            shutil.rmtree(beside, ignore_errors=True)
            if aside.exists() and not (self.path / name).exists():
                aside.rename(self.path / name)
            raise CheckpointError(
                f"{self.path / name}: the checkpoint cannot be written ({error}); make room, or "
                f"whatever it needs, and run again: it goes on {self._whence()}"
            ) from error

    def _encoded(self, saved: Saved, name: str) -> tuple[bytes, bytes]:
        """Return the content of the two files."""
        from safetensors import SafetensorError
        from safetensors.numpy import save

        try:
            # Not ascontiguousarray, which makes (1,) of a scalar.
            state = save({key: np.asarray(a, order="C") for key, a in saved.arrays.items()})
            manifest = {
                "format": FORMAT,
                "daskdl": __version__,
                "iteration": saved.iteration,
                "identity": dict(saved.identity),
                "more": dict(saved.more),
                "sha256": {"state.safetensors": hashlib.sha256(state).hexdigest()},
            }
            return state, json.dumps(manifest, indent=1).encode()
        except (SafetensorError, TypeError, ValueError) as error:
            raise CheckpointError(
                f"{self.path / name}: expected arrays of numbers, also from each callback's "
                f"state(), found what cannot be written ({error}); make arrays of it"
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
            except (OSError, ValueError) as error:
                problems.append(f"{folder.name} ({error})")
                continue
            for problem in problems:
                logger.warning(
                    "%s: %s is not whole; going on from %s", self.path, problem, folder.name
                )
            return saved
        if problems:
            raise CheckpointError(
                f"{self.path}: expected a whole checkpoint, found {'; '.join(problems)}; give "
                "another folder, or resume=False to begin anew"
            )
        return None

    def _whence(self) -> str:
        try:
            steps = self._steps()
        except OSError:  # nobody knows while the folder is gone
            return "from the last checkpoint that is there then"
        return f"from {steps[-1].name}" if steps else "at the beginning"

    def _steps(self) -> list[Path]:
        # By their whole name, since old ones are removed and the folder may hold other things.
        return sorted(p for p in self.path.iterdir() if re.fullmatch(r"step-\d{10}", p.name))


def check_identity(path: Path, saved: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Raise a CheckpointError that names what differs."""
    different = [
        _difference(name, saved.get(name), wanted[name])
        for name in wanted
        if saved.get(name) != wanted[name]
    ]
    if different:
        raise CheckpointError(
            f"{path}: holds the checkpoint of another run: expected {'; expected '.join(different)}"
            "; give another folder, or resume=False to begin anew"
        )


def _difference(name: str, found: Any, wanted: Any) -> str:
    if isinstance(found, list) and isinstance(wanted, list):
        if len(found) != len(wanted):
            return f"{name} of {len(wanted)} entries, found {len(found)}"
        i = next(i for i, pair in enumerate(zip(found, wanted, strict=True)) if pair[0] != pair[1])
        name, found, wanted = f"{name}[{i}]", found[i], wanted[i]
    return f"{name} {json.dumps(wanted)}, found {json.dumps(found)}"


def _read(folder: Path) -> Saved:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    manifest = json.loads((folder / "manifest.json").read_bytes())
    kind = manifest.get("format") if isinstance(manifest, dict) else None
    if kind != FORMAT:
        raise ValueError(f"manifest.json: expected format {FORMAT!r}, found {kind!r}")
    missing = {"iteration", "identity", "more", "sha256"} - manifest.keys()
    if missing:
        raise ValueError(f"manifest.json: expected {sorted(missing)}, found {sorted(manifest)}")
    state = (folder / "state.safetensors").read_bytes()
    if {"state.safetensors": hashlib.sha256(state).hexdigest()} != manifest["sha256"]:
        raise ValueError(
            f"state.safetensors: expected the sha256 that manifest.json names, found {len(state)} "
            "bytes of another"
        )
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
