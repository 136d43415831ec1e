"""A model's operations written down while it runs, for two sizes of batch side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from daskdl.errors import SettingsError
from daskdl.nn.core.arguments import call, parts_of
from daskdl.nn.core.module import Module
from daskdl.tensor import Array, Tensor, no_grad, watched_operations

#: Samples of the two runs: what grows with them depends on the batch.
BATCHES = (2, 3)


class Step(NamedTuple):
    """One operation: its name, inputs, settings and results."""

    name: str
    inputs: tuple[Any, ...]
    settings: dict[str, Any]
    results: tuple[Tensor, ...]


class Trace(NamedTuple):
    """One run of a model; ``called`` are the names of its outputs, if it returns a mapping."""

    inputs: tuple[Tensor, ...]
    steps: list[Step]
    outputs: tuple[Tensor, ...]
    called: tuple[str, ...] = ()


def traces(
    model: Module,
    shapes: Sequence[Sequence[int]],
    dtypes: Sequence[str],
    names: Sequence[str] = (),
) -> list[Trace]:
    """Run a model in inference on random samples, in batches of two sizes.

    A model that does other operations for another batch is refused by a SettingsError.
    """
    modes = {name: module.training for name, module in model.modules()}
    model.eval()
    try:
        both = [_trace(model, shapes, dtypes, names, batch) for batch in BATCHES]
    finally:
        for name, module in model.modules():
            module.training = modes[name]
    first, second = ([step.name for step in trace.steps] for trace in both)
    if first != second:
        raise SettingsError(
            f"{type(model).__name__}: expected the same operations for any batch, found "
            f"{len(first)} for {BATCHES[0]} samples and {len(second)} for {BATCHES[1]}"
            "; let forward do the same for any number of samples"
        )
    return both


def _trace(
    model: Module,
    shapes: Sequence[Sequence[int]],
    dtypes: Sequence[str],
    names: Sequence[str],
    batch: int,
) -> Trace:
    rng = np.random.default_rng(batch)
    inputs = tuple(
        Tensor(_sample(rng, (batch, *shape), dtype))
        for shape, dtype in zip(shapes, dtypes, strict=True)
    )
    steps: list[Step] = []

    def write_down(
        function: Callable[..., Any],
        given: tuple[Any, ...],
        settings: dict[str, Any],
        results: tuple[Any, ...],
    ) -> None:
        steps.append(Step(function.__name__, given, settings, results))

    with no_grad(), watched_operations(write_down):
        outputs = call(model, dict(zip(names, inputs, strict=True)) if names else inputs)
    called = tuple(outputs) if isinstance(outputs, Mapping) else ()
    return Trace(inputs, steps, tuple(parts_of(outputs)), called)


def _sample(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    if np.dtype(dtype).kind in "iu":
        return np.ones(shape, dtype)
    return rng.normal(size=shape).astype(dtype)
