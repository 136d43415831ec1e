"""Restoring: what a checkpoint holds, checked against what the fit that goes on from it needs."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from daskdl.data import SampleSet
from daskdl.data.order import block_lengths
from daskdl.data.recipe import version_of_all
from daskdl.train.checkpoint import CheckpointFolder, Saved, check_identity
from daskdl.train.step import State

if TYPE_CHECKING:
    from daskdl.train.trainer import Trainer


logger = logging.getLogger(__name__)


def check_restorable(saved: Saved, like: State) -> None:
    """Check weights, the optimizer's state, history and position, before any of them is used.

    Kernels step the optimizer's state where it lies, as long as the weights are.

    Parameters
    ----------
    saved : Saved
    like : State
        That of the fit before its first iteration.

    Raises
    ------
    ValueError
        Which names what differs from what was expected.
    """
    wanted = {"weights": like.weights} | {f"optimizer.{k}": v for k, v in like.slots.items()}
    found = {k: v for k, v in saved.arrays.items() if k in wanted or k.startswith("optimizer.")}
    for name in sorted(wanted.keys() | found.keys()):
        expected, held = _described(wanted, name), _described(found, name)
        if expected != held:
            raise ValueError(f"expected {name} {expected}, found {held}")
    _check_history(saved)
    kinds = {"epochs": list, "threads": int, "stopped": bool}
    for name, kind in kinds.items():
        if type(saved.more.get(name)) is not kind:
            raise ValueError(
                f"expected {name!r} as {kind.__name__}, found {saved.more.get(name)!r}"
            )
    if saved.more["threads"] < 1:
        raise ValueError(f"expected threads from 1, found {saved.more['threads']}")
    for row in saved.more["epochs"]:
        if not isinstance(row, dict) or "iteration" not in row:
            raise ValueError(f"expected each of 'epochs' with its iteration, found {row!r}")


def _check_history(saved: Saved) -> None:
    columns: dict[str, NDArray[Any] | None] = {
        k: v for k, v in saved.arrays.items() if k.startswith("history.")
    }
    for name in ("loss", "samples", "seconds"):  # a checkpoint may be older than a phase
        columns.setdefault(f"history.{name}", None)
    for name, column in columns.items():
        if column is None or column.shape != (saved.iteration,):
            found = "none" if column is None else f"{column.shape}"
            raise ValueError(f"expected {name} of shape ({saved.iteration},), found {found}")


def _described(arrays: Mapping[str, NDArray[Any]], name: str) -> str:
    return f"{arrays[name].dtype} {arrays[name].shape}" if name in arrays else "none"


def identity_of(trainer: Trainer, samples: SampleSet, batch_size: int, wire: str) -> dict[str, Any]:
    """Return what tells a run from others, of which no checkpoint goes on."""
    tables = trainer.model.tables  # which lie elsewhere than they would if not trained by rows
    return {
        "model": [
            [name, list(array.shape), *["rows"] * (name in tables)]
            for name, array in trainer.model.state_dict().items()
        ],
        "optimizer": type(trainer.optimizer).__name__,
        "seed": trainer.seed,
        "batch_size": batch_size,
        "shards": list(samples.lengths),
        **block_lengths(samples),
        "wire": wire,
        "precision": trainer.precision,
        "files": version_of_all(samples.recipes),
    }


def newest(folder: CheckpointFolder | None, identity: dict[str, Any], state: State) -> Saved | None:
    """Return the newest checkpoint that a fit, beginning with ``state``, can go on from."""
    if folder is None:
        return None
    path = folder.path
    wanted = {name: value for name, value in identity.items() if name != "files"}

    def check(saved: Saved) -> None:
        # Those of versions that knew no other precision do not name it.
        check_identity(path, {"precision": "float32", **saved.identity}, wanted)
        check_restorable(saved, state)

    saved = folder.read(check)
    if saved is not None and saved.identity.get("files", identity["files"]) != identity["files"]:
        logger.warning(
            "%s: the samples' files have changed since the checkpoint, by their sizes and "
            "times; if their contents have, the weights will be others than those of a "
            "run without an interruption: resume=False begins anew",
            path,
        )
    return saved
