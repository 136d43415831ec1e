"""Record a model's operations; collect the nodes and arrays of its ONNX file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from daskdl.errors import SettingsError
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


class Value(NamedTuple):
    """A name in the file; ``first``: it is (N, C, ...) there and (N, ..., C) here."""

    name: str
    ndim: int
    first: bool = False


class Emitter:
    """Collects nodes and arrays under unique names."""

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.nodes: list[Any] = []
        self.arrays: dict[str, Array] = {}
        self.products: dict[str, Any] = {}  # int8 weights, by the results of their nodes
        self.rounded: dict[tuple[Any, ...], str] = {}  # dequantized values, by name and scale
        self.batch: str | None = None  # name of the vector with the number of samples
        self._taken: set[str] = set()
        self._turned: dict[tuple[str, bool], Value] = {}
        self._constants: dict[tuple[Any, ...], str] = {}

    def free(self, name: str) -> str:
        """Return an unused name that begins with ``name``, and reserve it."""
        free, i = name, 1
        while free in self._taken:
            free, i = f"{name}_{i}", i + 1
        self._taken.add(free)
        return free

    def node(self, operator: str, *inputs: Any, results: int = 1, **attributes: Any) -> Any:
        """Add a node and return the names of its results.

        Inputs are names, values or arrays, which become constants; None leaves an input out.
        """
        from onnx import helper

        names = [self._name(value) for value in inputs]
        while names and not names[-1]:
            names.pop()
        outputs = [self.free(operator.lower()) for _ in range(results)]
        stated = {k: v for k, v in attributes.items() if v is not None}
        self.nodes.append(helper.make_node(operator, names, outputs, **stated))
        return outputs[0] if results == 1 else tuple(outputs)

    def _name(self, value: Any) -> str:
        if value is None:
            return ""
        if isinstance(value, Value):
            return self.last(value).name
        return value if isinstance(value, str) else self.constant(np.asarray(value))

    def constant(self, array: Array, name: str = "constant", shared: bool = True) -> str:
        """Return the name of an array; small equal arrays share one if ``shared``."""
        array = np.ascontiguousarray(array).reshape(np.shape(array))
        shared = shared and array.size <= 4096
        key = (array.dtype.str, array.shape, array.tobytes()) if shared else None
        if key is not None and key in self._constants:
            return self._constants[key]
        free = self.free(name)
        self.arrays[free] = array
        if key is not None:
            self._constants[key] = free
        return free

    def integers(self, *numbers: int) -> str:
        """Return the name of a vector of int64."""
        return self.constant(np.array(numbers, np.int64))

    # --- layouts

    def last(self, value: Value) -> Value:
        """Return a value with its channels last, as in daskdl."""
        return value if not value.first else self._turn(value)

    def first(self, value: Value) -> Value:
        """Return a value with its channels second, as images in ONNX."""
        return value if value.first or value.ndim < 3 else self._turn(value)

    def _turn(self, value: Value) -> Value:
        key = (value.name, value.first)
        if key not in self._turned:
            n = value.ndim
            perm = (0, *range(2, n), 1) if value.first else (0, n - 1, *range(1, n - 1))
            name = self.node("Transpose", value.name, perm=list(perm))
            turned = Value(name, n, not value.first)
            self._turned[key] = turned
            self._turned[name, turned.first] = value
        return self._turned[key]

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
