"""Predictors that are kept with their models, for as long as nothing of these changes.

What a predictor has made ready (weights in the order of the kernels, programs, copies for threads)
costs more than a pass of a few samples. Whoever asks a model again and again should not pay it each
time, and should not have to know. So before each use the model is compared with what it was: which
modules it has, their attributes, and a digest of all numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import is_
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from daskdl.kernels.vectors.digest import digest
from daskdl.nn import Module
from daskdl.predict.predictor import Predictor, copy_of

#: Predictors of one model at a time, such as of `predict` and of `embed`.
MOST = 4
#: Bytes of an array up to which it is kept itself, not a digest of it.
SMALL = 1024

_kept: WeakKeyDictionary[Module, _Kept] = WeakKeyDictionary()
_lock = Lock()


@dataclass(frozen=True, eq=False)
class _State:
    """The state of a model at some time: its modules' attributes, and digests of its numbers."""

    attributes: list[dict[str, Any]]
    numbers: list[Any]

    def is_that_of(self, other: _State) -> bool:
        """Tell whether a model in the one state is as it was in the other."""
        return (
            len(self.attributes) == len(other.attributes)
            and all(map(_same, self.attributes, other.attributes))
            and self.numbers == other.numbers
        )


@dataclass(frozen=True, eq=False)
class _Kept:
    """The state of a model at some time, and its predictors since then.

    They work on a copy with the model's own weights: one that knew the model itself would keep it
    in memory.
    """

    state: _State
    copy: Module
    predictors: dict[tuple[Any, ...], Predictor] = field(default_factory=dict)


def _same(now: dict[str, Any], then: dict[str, Any]) -> bool:
    return now.keys() == then.keys() and all(map(is_, now.values(), then.values()))


def predictor_of(
    model: Module,
    layer: str | None,
    classes: bool,
    batch_size: int | None,
    threads: int | None,
    precision: str,
) -> Predictor:
    """Return a predictor of a model as it is now: the one of before where nothing has changed.

    Arguments are those of `Predictor`.

    Examples
    --------
    >>> model = nn.Linear(3, 2)
    >>> settings = (None, False, None, 1, "float32")
    >>> first = predictor_of(model, *settings)
    >>> first is predictor_of(model, *settings)
    True
    >>> model.weight.data[0, 0] += 1
    >>> first is predictor_of(model, *settings)
    False
    """
    modules = [module for _, module in model.modules()]
    for module in modules:
        module.take_over()
    settings = (layer, classes, batch_size, threads, precision)
    # Threads that share a model look at it, and copy it, side by side.
    state = _State(_attributes(modules), _numbers(model, modules))
    with _lock:
        kept = _kept.get(model)
    if kept is None or not state.is_that_of(kept.state):
        made = _Kept(state, copy_of(model))
        with _lock:
            kept = _kept.get(model)
            if kept is None or not state.is_that_of(kept.state):  # nobody was faster
                kept = _kept[model] = made
    with _lock:
        predictor = kept.predictors.pop(settings, None)
        if predictor is None:
            predictor = Predictor(
                kept.copy, layer, classes, batch_size, threads, precision=precision
            )
        kept.predictors[settings] = predictor
        if len(kept.predictors) > MOST:
            kept.predictors.pop(next(iter(kept.predictors)))
    return predictor


def _attributes(modules: list[Module]) -> list[dict[str, Any]]:
    """Return the attributes of modules, those of wrapped modules of others among them."""
    made = [dict(attributes) for module in modules for attributes in module.attributes()]
    for attributes in made:
        attributes.pop("training", None)  # which does not count in inference
    return made


def _numbers(model: Module, modules: list[Module]) -> list[Any]:
    """Return digests of weights, buffers, tables and constants; the bytes of small ones."""
    joined = model.joined
    arrays = [joined.whole, *(table.data for table in joined.tables.values())]
    arrays += [a for module in modules for a in getattr(module, "constants", {}).values()]
    # A network of ONNX has hundreds of constants of some bytes, which are copied sooner.
    return [
        array.tobytes() if array.nbytes <= SMALL else digest(array)
        for array in arrays
        if isinstance(array, np.ndarray)
    ]
