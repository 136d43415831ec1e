"""One pass of a model in inference, and the rules by which its operations are computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from daskdl.kernels.runtime.memory import empty
from daskdl.nn.inference.prepared import Prepared
from daskdl.nn.inference.program import Recorder
from daskdl.tensor import Array, Tensor, evaluated_by

Rule = Callable[..., Any]
_RULES: dict[Any, Rule] = {}


class Pass:
    """One pass of a model: its prepared weights, and who writes down what is called."""

    def __init__(self, prepared: Prepared, recorder: Recorder | None) -> None:
        self.prepared, self.recorder = prepared, recorder
        #: The floats that were rounded last (a weak reference), their scale, and the bytes.
        self.rounded: tuple[Callable[[], Any], Any, Any] = (lambda: None), None, None

    def call(self, function: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
        """Call a function of arrays."""
        if self.recorder is None:
            return function(*arguments, **settings)
        return self.recorder.call(function, *arguments, **settings)

    def plain(self, value: Any) -> Array:
        """Return a tensor's numbers as kernels take them, without gaps."""
        array = array_of(value)
        return array if array.flags.carray else self.call(_plain, array)

    def evaluate(
        self, function: Callable[..., Any], inputs: tuple[Any, ...], settings: dict[str, Any]
    ) -> Any:
        """Return the result of an operation, maybe pending; None to have it computed as usual."""
        rule = _RULES.get(function)
        evaluated = None if rule is None else rule(self, *inputs, **settings)
        if evaluated is not None or self.recorder is None:
            return evaluated
        arrays = [value.data if isinstance(value, Tensor) else value for value in inputs]
        if not any(isinstance(a, np.ndarray) and a.dtype.kind == "f" for a in arrays):
            return None  # arithmetic of shapes, which a program does not do again
        result = self.call(result_of, function, *arrays, **settings)
        return tuple(map(Tensor, result)) if isinstance(result, tuple) else Tensor(result)


def result_of(function: Callable[..., Any], *arrays: Any, **settings: Any) -> Any:
    """Return the result of an operation's function, without its backward."""
    return function(*arrays, **settings)[0]


@contextmanager
def optimized(prepared: Prepared, recorder: Recorder | None = None) -> Iterator[None]:
    """Join operations of this thread, with weights of a model that are prepared.

    No gradients are recorded. What is computed in here may be read later.
    """
    with evaluated_by(Pass(prepared, recorder).evaluate):
        yield


def rule(operation: Any) -> Callable[[Rule], Rule]:
    """Register how an operation is computed; the function returns None to have it done as usual."""

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
