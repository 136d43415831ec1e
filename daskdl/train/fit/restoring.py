"""Restoring: a checkpoint, checked for the fit that resumes from it."""

from __future__ import annotations

import logging
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daskdl.data import SampleSet
from daskdl.data.lazy.blocks import block_lengths
from daskdl.data.recipe import version_of_all
from daskdl.errors import CheckpointError
from daskdl.nn import Frozen
from daskdl.train.engines.step import State
from daskdl.train.fit.callback import Callback
from daskdl.train.fit.checkpoint import CheckpointFolder, Saved, check_identity
from daskdl.train.watch.history import COLUMNS, History

if TYPE_CHECKING:
    from daskdl.train.fit.trainer import Trainer

logger = logging.getLogger(__name__)


def check_restorable(saved: Saved, like: State) -> None:
    """Check weights, the optimizer's state, history and position, before any of them is used.

    Kernels change the optimizer's state in place, over the length of the weights. A ValueError
    names the difference from the state of the fit before its first iteration.
    """
    wanted = {"weights": like.weights} | {f"optimizer.{k}": v for k, v in like.slots.items()}
    stored = {k: v for k, v in saved.arrays.items() if k in wanted or k.startswith("optimizer.")}
    for name in sorted(wanted.keys() | stored.keys()):
        expected, actual = _described(wanted, name), _described(stored, name)
        if expected != actual:
            raise ValueError(f"expected {name} {expected}, found {actual}")
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
    columns: dict[str, NDArray[Any] | None] = dict.fromkeys(f"history.{name}" for name in COLUMNS)
    columns |= {k: v for k, v in saved.arrays.items() if k.startswith("history.")}
    for name, column in columns.items():
        if column is None or column.shape != (saved.iteration,):
            described = "none" if column is None else f"{column.shape}"
            raise ValueError(f"expected {name} of shape ({saved.iteration},), found {described}")


def _described(arrays: Mapping[str, NDArray[Any]], name: str) -> str:
    return f"{arrays[name].dtype} {arrays[name].shape}" if name in arrays else "none"


def identity_of(trainer: Trainer, samples: SampleSet, batch_size: int, wire: str) -> dict[str, Any]:
    """Return the key of a run; checkpoints of other keys are refused."""
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
        "precision": trainer.computed_in,
        "files": version_of_all(samples.recipes),
        **_frozen(trainer),
    }


def _frozen(trainer: Trainer) -> dict[str, int]:
    """Return a checksum of the weights that no checkpoint has; empty if there are none."""
    weights = [t.data for _, t in trainer.model.held() if isinstance(t, Frozen)]
    total = reduce(lambda crc, w: zlib.crc32(np.ascontiguousarray(w).data, crc), weights, 0)
    return {"frozen weights": total} if weights else {}


def newest(
    folder: CheckpointFolder | None, identity: dict[str, Any], state: State, precision: str
) -> Saved | None:
    """Return the newest checkpoint that a fit with the first ``state`` can resume from.

    With ``precision`` "bf16" the run keeps the checkpoint's order of sums, which is written to
    ``identity``.
    """
    if folder is None:
        return None
    path = folder.path
    wanted = {name: value for name, value in identity.items() if name != "files"}

    def check(saved: Saved) -> None:
        name = str(saved.identity.get("precision"))
        any_order = precision == "bf16" and name.startswith("bf16")
        check_identity(path, saved.identity, wanted | {"precision": name} if any_order else wanted)
        check_restorable(saved, state)

    saved = folder.read(check)
    if saved is None:
        return None
    identity["precision"] = saved.identity["precision"]
    if saved.identity.get("files") != identity["files"]:
        logger.warning(
            "%s: the samples' files have changed since the checkpoint, by their sizes and "
            "times; if their contents have, the weights will be others than those of a "
            "run without an interruption: resume=False begins anew",
            path,
        )
    return saved


def saved_run(
    state: State,
    identity: dict[str, Any],
    history: History,
    callbacks: Sequence[Callback],
    threads: int,
    stopped: bool,
) -> Saved:
    """Return the contents of a checkpoint."""
    arrays: dict[str, Any] = {"weights": state.weights}
    arrays |= {f"optimizer.{name}": slot for name, slot in state.slots.items()}
    arrays |= {f"history.{name}": column for name, column in history.arrays().items()}
    for prefix, callback in _prefixes(callbacks):
        arrays |= {f"{prefix}{name}": value for name, value in callback.state().items()}
    more = {"epochs": history.epochs, "threads": threads, "stopped": stopped}
    return Saved(state.iteration, identity, arrays, more)


def restored_run(saved: Saved, callbacks: Sequence[Callback]) -> tuple[State, History]:
    """Undo :func:`saved_run`."""

    def under(prefix: str) -> dict[str, Any]:
        names = (name for name in saved.arrays if name.startswith(prefix))
        return {name[len(prefix) :]: saved.arrays[name] for name in names}

    for prefix, callback in _prefixes(callbacks):
        entries = under(prefix)
        if entries:
            try:
                callback.restore(entries)
            except (KeyError, TypeError, ValueError) as error:
                raise CheckpointError(
                    f"checkpoint of iteration {saved.iteration}: expected a state of "
                    f"{type(callback).__name__}, found {sorted(entries)}, which it does not take "
                    f"({type(error).__name__}: {error}); give another folder, or resume=False to "
                    "begin anew"
                ) from error
    state = State(saved.arrays["weights"], under("optimizer."), saved.iteration)
    return state, History.from_arrays(under("history."), saved.more["epochs"])


def _prefixes(callbacks: Sequence[Callback]) -> Iterator[tuple[str, Callback]]:
    """Name each callback by its class and number, so that others may change between runs."""
    places: Counter[str] = Counter()
    for callback in callbacks:
        kind = type(callback).__name__
        yield f"callback.{kind}.{places[kind]}.", callback
        places[kind] += 1
