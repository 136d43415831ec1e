"""Passes of a model in inference, and the table of rules for operations."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from daskdl.kernels.runtime.memory import aligned, empty
from daskdl.kernels.runtime.precision import precision
from daskdl.kernels.runtime.threads import threads
from daskdl.nn.core.state import arrays
from daskdl.nn.core.structure import Structure
from daskdl.nn.inference.pending import Rounded
from daskdl.nn.inference.prepared import Prepared
from daskdl.nn.inference.program import Layout, Program, Recorder, is_pure
from daskdl.tensor import Array, Tensor, evaluated_by

Rule = Callable[..., Any]
_RULES: dict[Any, Rule] = {}

#: Most shapes of input for which a program is kept.
SHAPES = 16


class Pass:
    """One pass of a model: its prepared weights, and the recorder of its calls.

    ``latest`` are the floats that an int8 layer rounded last, and their bytes, for other layers.
    """

    def __init__(self, prepared: Prepared, recorder: Recorder | None) -> None:
        self.prepared, self.recorder = prepared, recorder
        self.latest: tuple[Any, Rounded] | None = None

    def call(self, function: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
        """Call a function of arrays."""
        if self.recorder is None:
            return function(*arguments, **settings)
        return self.recorder.call(function, *arguments, **settings)

    def contiguous(self, value: Any) -> Array:
        """Return a tensor's numbers as a C-contiguous array, as kernels need them."""
        array = array_of(value)
        return array if array.flags.carray else self.call(_plain, array)

    def evaluate(
        self, function: Callable[..., Any], inputs: tuple[Any, ...], settings: dict[str, Any]
    ) -> Any:
        """Return the result of an operation, maybe pending; None to compute it as usual."""
        rule = _RULES.get(function)
        evaluated = None if rule is None else rule(self, *inputs, **settings)
        if evaluated is not None or self.recorder is None:
            return evaluated
        arrays = [value.data if isinstance(value, Tensor) else value for value in inputs]
        if not any(isinstance(a, np.ndarray) and a.dtype.kind == "f" for a in arrays):
            return None  # arithmetic of shapes, which a program does not repeat
        result = self.call(result_of, function, *arrays, **settings)
        return tuple(map(Tensor, result)) if isinstance(result, tuple) else Tensor(result)


def result_of(function: Callable[..., Any], *arrays: Any, **settings: Any) -> Any:
    """Return the result of an operation's function, without its backward function."""
    return function(*arrays, **settings)[0]


@contextmanager
def optimized(prepared: Prepared, recorder: Recorder | None = None) -> Iterator[None]:
    """Join operations of this thread inside the block, with a model's prepared weights.

    No gradients are recorded. Results may be read after the block.
    """
    with evaluated_by(Pass(prepared, recorder).evaluate):
        yield


def rule(operation: Any) -> Callable[[Rule], Rule]:
    """Register a rule for an operation; it returns None to compute the operation as usual."""

    def register(function: Rule) -> Rule:
        _RULES[operation.__wrapped__] = function
        return function

    return register


def array_of(value: Any) -> Array:
    """Return the numbers of a tensor or an array."""
    return value.data if isinstance(value, Tensor) else np.asarray(value)


def _plain(array: Array) -> Array:
    if array.flags.carray:
        return array
    y = empty(array.shape, array.dtype)
    np.copyto(y, array)
    return y


class Inference:
    """Prepared weights, and a program for each shape of input, shared by all passes of a model.

    Several threads may use it at a time; weights must not change meanwhile. :meth:`run` also takes
    copies of the model with the same arrays of parameters and buffers.
    """

    def __init__(self, model: Structure) -> None:
        arrays = [tensor.data for _, tensor in model.held()]
        arrays += [array for array in constants_of(model) if isinstance(array, np.ndarray)]
        self.prepared, self._pure = Prepared(arrays), is_pure(model)
        self._programs: dict[Any, Program | None] = {}
        self._local = threading.local()

    def run(self, model: Any, x: Array) -> Any:
        """Return the results of ``model(x)``, a tuple of arrays; the model is in inference.

        A mapping is returned unchanged.
        """
        key = x.shape, x.dtype, precision()
        program = self._programs.get(key)
        if program is not None:
            return tuple(program(np.ascontiguousarray(x), self._layout(key, program.n_bytes)))
        if not self._pure or key in self._programs or x.dtype != np.float32:
            with optimized(self.prepared):
                return _flat(model(x))
        x = np.ascontiguousarray(x)
        recorder = Recorder(self.prepared, x)
        with optimized(self.prepared, recorder):
            results = _flat(model(x))
        if len(self._programs) < SHAPES:
            named = isinstance(results, Mapping)
            self._programs[key] = None if named else recorder.program(results)
        return results

    def _layout(self, key: Any, n_bytes: int) -> Layout:
        """Return a program's layout in this thread's memory."""
        local, full_key = self._local, (key, threads())
        room: Array | None = getattr(local, "room", None)
        if room is None or room.size < n_bytes:
            local.layouts, local.room = {}, None  # release the old one first
            del room
            local.room = aligned(n_bytes, np.uint8)
        layout: Layout | None = local.layouts.get(full_key)
        if layout is None:
            layout = local.layouts[full_key] = Layout(local.room)
        return layout


def _flat(result: Any) -> Any:
    return result if isinstance(result, Mapping) else tuple(arrays(result))


def constants_of(model: Structure) -> list[Any]:
    """Return the arrays of a model that are neither parameters nor buffers, such as a graph's."""
    return [
        array
        for _, module in model.modules()
        for name in ("constants", "made")
        for array in getattr(module, name, {}).values()
    ]
