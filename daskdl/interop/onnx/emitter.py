"""Record a model's operations; collect the nodes and arrays of its ONNX file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from daskdl.errors import SettingsError
from daskdl.interop.building import LastBuilder, Value
from daskdl.nn.core.arguments import call, parts_of
from daskdl.nn.core.module import Module
from daskdl.tensor import Array, Tensor, no_grad, watched_operations

#: Batch sizes of the two runs: lengths that differ between them depend on the batch.
BATCHES = (2, 3)


class Step(NamedTuple):
    """One operation: its name, inputs, settings and results."""

    name: str
    inputs: tuple[Any, ...]
    settings: dict[str, Any]
    results: tuple[Tensor, ...]


class Trace(NamedTuple):
    """One run of a model; ``called`` has the outputs' names if the model returns a mapping."""

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

    Raises SettingsError when the two runs have different operations.
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
        inputs: tuple[Any, ...],
        settings: dict[str, Any],
        results: tuple[Any, ...],
    ) -> None:
        steps.append(Step(function.__name__, inputs, settings, results))

    with no_grad(), watched_operations(write_down):
        outputs = call(model, dict(zip(names, inputs, strict=True)) if names else inputs)
    called = tuple(outputs) if isinstance(outputs, Mapping) else ()
    return Trace(inputs, steps, tuple(parts_of(outputs)), called)


def _sample(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    if np.dtype(dtype).kind in "iu":
        return np.ones(shape, dtype)
    return rng.normal(size=shape).astype(dtype)


class Emitter(LastBuilder):
    """Collects nodes of ONNX and arrays; daskdl has channels last, and ONNX second."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes: list[Any] = []  # of ONNX
        self.products: dict[str, Any] = {}  # int8 weights, by the results of their nodes
        self.rounded: dict[tuple[Any, ...], str] = {}  # dequantized values, by name and scale
        self.batch: str | None = None  # name of the vector with the number of samples

    def node(
        self, operator: str, *inputs: Any, name: str = "", results: int = 1, **attributes: Any
    ) -> Any:
        """Add a node and return the names of its results.

        Inputs are names, values or arrays, which become constants; None leaves an input out.
        """
        from onnx import helper

        names = [self._name(value) for value in inputs]
        while names and not names[-1]:
            names.pop()
        outputs = [self.free(name or operator.lower()) for _ in range(results)]
        stated = {k: v for k, v in attributes.items() if v is not None}
        self.nodes.append(helper.make_node(operator, names, outputs, **stated))
        return outputs[0] if results == 1 else tuple(outputs)

    def _name(self, value: Any) -> str:
        if value is None:
            return ""
        if isinstance(value, Value):
            return self.last(value).name
        return value if isinstance(value, str) else self.constant(value)

    def constant(self, value: Any, dtype: Any = None, shared: bool = True) -> str:
        """Return the name of an array; equal arrays share one if ``shared``."""
        array = np.asarray(value, dtype, order="C")
        name = super().constant(array, array.dtype) if shared else self.free("constant")
        self.arrays[name] = array
        return name

    # --- shapes

    def shape(self, shapes: Sequence[tuple[int, ...]], reshaping: bool = False) -> str:
        """Return the name of a shape, given for each of the two batch sizes.

        Lengths that differ grow with the batch; for ``reshaping`` a single such length is -1.
        """
        lengths = [self._length(a, b) for a, b in zip(*shapes, strict=True)]
        growing = [i for i, (slope, _) in enumerate(lengths) if slope]
        if not growing:
            return self.integers(*shapes[0])
        if reshaping and len(growing) == 1:
            return self.integers(*(-1 if slope else rest for slope, rest in lengths))
        if self.batch is None:
            raise SettingsError("expected an input with the samples along its first axis")
        parts = []
        for slope, rest in lengths:
            if not slope:
                parts.append(self.integers(rest))
                continue
            part = self.batch
            part = part if slope == 1 else self.node("Mul", part, self.integers(slope))
            parts.append(part if not rest else self.node("Add", part, self.integers(rest)))
        return parts[0] if len(parts) == 1 else str(self.node("Concat", *parts, axis=0))

    @staticmethod
    def _length(a: int, b: int) -> tuple[int, int]:
        slope = (b - a) // (BATCHES[1] - BATCHES[0])
        return slope, a - slope * BATCHES[0]
