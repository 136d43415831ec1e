"""The table of operators by name, and the record of a node for its operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from daskdl import ops
from daskdl.errors import SettingsError
from daskdl.nn.inference.pending import Pending
from daskdl.nn.inference.program import memory_order
from daskdl.nn.inference.running import array_of
from daskdl.tensor import Tensor, evaluated

array = array_of
#: Values between nodes: a Tensor, an array (of integers or bools), a list of these (a sequence),
#: or None (an omitted input).
Value = Any


@dataclass(frozen=True, slots=True)
class Call:
    """One node, as its operator sees it.

    ``attributes`` are plain data by name. ``opset`` is the version of the operator set, since some
    operators changed. ``results`` is the number of named results. Control flow calls ``run`` with a
    :class:`daskdl.nn.core.graph.Subgraph` and values by name.
    """

    name: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    opset: int = 21
    results: int = 1
    training: bool = False
    run: Callable[..., Any] | None = None

    def get(self, name: str, default: Any = None) -> Any:
        """Return an attribute."""
        return self.attributes.get(name, default)


Operator = Callable[..., Any]
TABLE: dict[str, Operator] = {}
#: Attributes of operators that ONNX's standard lacks, by the operators' names.
KEYS: dict[str, frozenset[str]] = {}


def operator(*names: str, keys: str | None = None) -> Callable[[Operator], Operator]:
    """Register a function of (call, inputs ...) under these names.

    ``keys`` are the attributes, in one text, of an operator outside of the standard.
    """

    def register(function: Operator) -> Operator:
        for name in names:
            TABLE[name] = function
            if keys is not None:
                KEYS[name] = frozenset(keys.split())
        return function

    return register


def shape_of(value: Value) -> tuple[int, ...]:
    """Return a value's shape without computing a tensor."""
    return value.shape if isinstance(value, Tensor) else np.shape(value)


def dtype_of(value: Value) -> np.dtype[Any]:
    """Return a value's dtype without computing a tensor."""
    return value.dtype if isinstance(value, Tensor) else np.asarray(value).dtype


def is_float(value: Value) -> bool:
    """Whether a value's numbers are floats, which have gradients."""
    return dtype_of(value).kind == "f"


def integers(value: Value) -> tuple[int, ...]:
    """Return a vector of integers, such as axes, or a single one, as a tuple."""
    values = array(value)
    if values.dtype.kind not in "iu":
        raise SettingsError(f"expected integers, found {values.dtype} of shape {values.shape}")
    return tuple(int(n) for n in values.reshape(-1))


def axes_of(call: Call, ndim: int, axes_input: Value = None, name: str = "axes") -> tuple[int, ...]:
    """Return the axes of an attribute or, in later versions, of an input; from 0."""
    axes = call.get(name) if axes_input is None else integers(axes_input)
    if axes is None:
        return ()
    axes = (axes,) if isinstance(axes, int) else axes
    if any(not -ndim <= a < ndim for a in axes):
        raise SettingsError(f"{name}: expected axes of {ndim}, found {tuple(axes)}")
    return tuple(a % ndim for a in axes)


def elementwise(function: Callable[..., Any], *values: Value, **settings: Any) -> Any:
    """Call an operation on arrays of one shape in their memory's order."""
    pending = [value for value in values if isinstance(value, Pending)]
    of_bytes = function is ops.add and len(pending) == 2
    if any(value.waiting for value in pending) or of_bytes:
        wrapped = getattr(function, "__wrapped__", None)
        evaluation = None if wrapped is None else evaluated(wrapped, values, settings)
        if evaluation is not None:
            return evaluation
    ndim, (order, *others) = array(values[0]).ndim, [memory_order(array(v)) for v in values]
    same = order in (None, tuple(range(ndim))) or ndim < 3
    if same or order is None or any(other != order for other in others):
        return function(*values, **settings)
    moved = [ops.transpose(v, axes=order) for v in values]
    back = tuple(int(i) for i in np.argsort(order))
    return ops.transpose(function(*moved, **settings), axes=back)


def channels_last(value: Value) -> Any:
    """Return (N, C, ...) as (N, ..., C)."""
    ndim = len(shape_of(value))
    return ops.transpose(value, axes=(0, *range(2, ndim), 1)) if ndim > 2 else value


def channels_second(value: Value) -> Any:
    """Return (N, ..., C) as (N, C, ...)."""
    ndim = len(shape_of(value))
    return ops.transpose(value, axes=(0, ndim - 1, *range(1, ndim - 1))) if ndim > 2 else value
