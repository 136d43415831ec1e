"""Checkpoint: a folder that holds the last two states of a run, each whole or not there."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import CheckpointError
from daskdl.files import HeldError, locked, sync, write_synced
from daskdl.version import __version__

logger = logging.getLogger(__name__)

FORMAT = "daskdl-checkpoint-2"
STATE, MANIFEST, SUMS = "state.safetensors", "manifest.json", "SHA256SUMS"
KEEP = 2
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Saved:
    """Contents of one checkpoint.

    The iterations done and the batch size give the position in the data. Only a run with the same
    identity can resume from here. Arrays are weights, state of the optimizer and of callbacks, and
    history; ``more`` is plain data.
    """

    iteration: int
    identity: Mapping[str, Any]
    arrays: Arrays
    more: Mapping[str, Any]


class CheckpointFolder:
    """The checkpoints of a run, in a folder that is created if it does not exist.

    ``step-<iteration>/`` holds state.safetensors, manifest.json and SHA256SUMS, which has the
    sha256 of both, as ``sha256sum --check`` reads them. A checkpoint is written under another name
    and renamed. Raises CheckpointError when one cannot be written, read or removed.
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

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Lock the folder for this fit, and repair what a killed fit left.

        Raises CheckpointError when another fit writes here.
        """
        with ExitStack() as stack:
            try:
                stack.enter_context(locked(self.path / ".lock"))
                self._recover()
            except HeldError as holder:
                raise CheckpointError(
                    f"{self.path}: expected a folder of this fit alone, found another fit that "
                    f"writes its checkpoints there ({holder}); wait for it, or give another folder"
                ) from None
            except OSError as error:
                raise CheckpointError(
                    f"{self.path}: expected a folder to write checkpoints to, found that it cannot "
                    f"be written ({error})"
                ) from error
            yield

    def clear(self) -> None:
        """Remove all checkpoints."""
        try:
            for folder in self._steps():
                shutil.rmtree(folder)
        except OSError as error:
            raise CheckpointError(
                f"{self.path}: its checkpoints cannot be removed ({error}); give another folder"
            ) from error

    def write(self, saved: Saved) -> None:
        """Write a checkpoint and remove all but the last two; an error leaves earlier ones."""
        name = f"step-{saved.iteration:010d}"
        temporary, aside = (self.path / f".{name}.{os.getpid()}{end}" for end in ("", ".old"))
        content = self._encoded(saved, name)
        try:
            self._recover()
            temporary.mkdir()
            for file, of_file in content.items():
                write_synced(temporary / file, of_file)
            sync(temporary)
            if (self.path / name).exists():
                (self.path / name).rename(aside)
            temporary.rename(self.path / name)
            sync(self.path)
            shutil.rmtree(aside, ignore_errors=True)
            for old in self._steps()[:-KEEP]:
                shutil.rmtree(old)
        except OSError as error:
            shutil.rmtree(temporary, ignore_errors=True)
            if aside.exists() and not (self.path / name).exists():
                aside.rename(self.path / name)
            raise CheckpointError(
                f"{self.path / name}: the checkpoint cannot be written ({error}); make room, or "
                f"whatever it needs, and run again: it goes on {self._whence()}"
            ) from error

    def _recover(self) -> None:
        """Restore a checkpoint that a killed fit had moved aside, and remove partial ones.

        A checkpoint is moved aside while another one of the same iteration replaces it.
        """
        for leftover in self.path.glob(".step-*"):
            name = re.fullmatch(r"\.(step-\d{10})\.\d+\.old", leftover.name)
            if name is not None and not (self.path / name[1]).exists():
                leftover.rename(self.path / name[1])
            else:
                shutil.rmtree(leftover, ignore_errors=True)

    def _encoded(self, saved: Saved, name: str) -> dict[str, bytes]:
        """Return the content of the files by name, the sums last."""
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
            }
            content = {STATE: state, MANIFEST: json.dumps(manifest, indent=1).encode()}
            return {**content, SUMS: _sums(content)}
        except (SafetensorError, TypeError, ValueError) as error:
            raise CheckpointError(
                f"{self.path / name}: expected arrays of numbers, also from each callback's "
                f"state(), found what cannot be written ({error}); make arrays of it"
            ) from error

    def read(self, check: Callable[[Saved], object] | None = None) -> Saved | None:
        """Return the newest whole checkpoint, None when there is none.

        ``check`` raises a ValueError for a checkpoint whose contents do not fit. Raises
        CheckpointError when there are checkpoints and none is whole.
        """
        problems = []
        for folder in reversed(self._steps()):
            try:
                saved = _read(folder)
                if check is not None:
                    check(saved)
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


def _difference(name: str, actual: Any, wanted: Any) -> str:
    if isinstance(actual, list) and isinstance(wanted, list):
        if len(actual) != len(wanted):
            return f"{name} of {len(wanted)} entries, found {len(actual)}"
        i = next(i for i, pair in enumerate(zip(actual, wanted, strict=True)) if pair[0] != pair[1])
        name, actual, wanted = f"{name}[{i}]", actual[i], wanted[i]
    return f"{name} {json.dumps(wanted)}, found {json.dumps(actual)}"


def _read(folder: Path) -> Saved:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    content = {name: (folder / name).read_bytes() for name in (STATE, MANIFEST)}
    if not (folder / SUMS).exists():
        raise ValueError(f"{SUMS}: expected the sha256 of the other files, found no such file")
    lines = (folder / SUMS).read_bytes().splitlines()
    for name, it in content.items():
        if _sums({name: it}).strip() not in lines:
            raise ValueError(
                f"{name}: expected the sha256 that was written, found {len(it)} bytes of another"
            )
    manifest = json.loads(content[MANIFEST])
    kind = manifest.get("format") if isinstance(manifest, dict) else None
    if kind != FORMAT:
        raise ValueError(f"{MANIFEST}: expected format {FORMAT!r}, found {kind!r}")
    for name, wanted in {"iteration": int, "identity": dict, "more": dict}.items():
        if type(manifest.get(name)) is not wanted:
            raise ValueError(
                f"{MANIFEST}: expected {name!r} as {wanted.__name__}, found {manifest.get(name)!r}"
            )
    if f"step-{manifest['iteration']:010d}" != folder.name:
        raise ValueError(
            f"{MANIFEST}: expected the iteration of its folder, found {manifest['iteration']}"
        )
    try:
        arrays = load(content[STATE])
    except SafetensorError as error:
        raise ValueError(f"{STATE}: {error}") from error
    return Saved(manifest["iteration"], manifest["identity"], arrays, manifest["more"])


def _sums(content: Mapping[str, bytes]) -> bytes:
    lines = (f"{hashlib.sha256(it).hexdigest()}  {name}\n" for name, it in sorted(content.items()))
    return "".join(lines).encode()
