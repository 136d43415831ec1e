"""Arguments of layers, and the inputs of a network: checks that name the layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from daskdl.errors import ShapeError
from daskdl.tensor import Tensor

#: One number for all axes, or one for each.
Sizes = int | Sequence[int]

_LEADING = {3: "NT", 4: "NHW", 5: "NTHW"}


def sizes(name: str, value: Any, count: int, least: int = 1) -> tuple[int, ...]:
    """Return ``count`` numbers; one number stands for all."""
    numbers = (value,) * count if isinstance(value, int) else value
    if (
        not isinstance(numbers, (tuple, list))
        or len(numbers) != count
        or any(isinstance(n, bool) or not isinstance(n, int) or n < least for n in numbers)
    ):
        many = "a pair" if count == 2 else str(count)
        raise ShapeError(
            f"{name}: expected an integer >= {least} or {many} of them, found {value!r}"
        )
    return tuple(numbers)


def pair(name: str, value: int | Sequence[int], least: int = 1) -> tuple[int, int]:
    """Return ``value`` for (rows, columns); one number stands for both."""
    first, second = sizes(name, value, 2, least)
    return first, second


def sides(name: str, value: Any, count: int) -> tuple[int, ...]:
    """Return 2 * count numbers, before and after each axis.

    One number stands for all; one for each axis stands for both its sides.
    """
    if isinstance(value, (tuple, list)) and len(value) == 2 * count:
        return sizes(name, value, 2 * count, least=0)
    return tuple(n for n in sizes(name, value, count, least=0) for _ in range(2))


def check_last_axis(layer: object, x: Any, ndim: int | None, features: int) -> None:
    """Raise a ShapeError unless ``x`` has ``ndim`` axes (None: any) and ``features`` channels."""
    shape = x.shape
    if (ndim is None or len(shape) == ndim) and shape and shape[-1] == features:
        return
    leading = "..." if ndim is None else ", ".join(_LEADING.get(ndim, "N"))
    raise ShapeError(
        f"{type(layer).__name__}: expected an input of shape ({leading}, {features}), channels "
        f"last, found {tuple(shape)}"
    )


def check_axes(layer: object, x: Any, axes: str) -> None:
    """Raise a ShapeError unless ``x`` has one axis for each name of ``axes``, as in "N H W C"."""
    if len(x.shape) != len(axes.split()):
        raise ShapeError(
            f"{type(layer).__name__}: expected an input of shape ({', '.join(axes.split())}), "
            f"found {tuple(x.shape)}"
        )


def as_inputs(x: Any) -> Any:
    """Return floating-point numbers as float32, everything else unchanged.

    Whole numbers, such as ids, do not change, nor do values that are not arrays, such as a Ragged
    column. In a tuple or mapping this holds for each member.
    """
    if isinstance(x, np.ndarray):
        return x.astype(np.float32, copy=False) if x.dtype.kind == "f" else x
    return each(as_inputs, x) if isinstance(x, (tuple, Mapping)) else x


def each(function: Callable[[Any], Any], x: Any) -> Any:
    """Apply a function to an array, or to each member of a tuple or mapping."""
    if isinstance(x, Mapping):
        return {name: function(part) for name, part in x.items()}
    return tuple(map(function, x)) if isinstance(x, (tuple, list)) else function(x)


def call(model: Callable[..., Any], x: Any) -> Any:
    """Call a model with an array, with each member of a tuple, or with a mapping's by name."""
    if isinstance(x, tuple):
        return model(*x)
    named = not isinstance(x, np.ndarray) and isinstance(x, Mapping)  # slow check
    return model(**x) if named else model(x)


def parts_of(x: Any) -> list[Any]:
    """Return the arrays of inputs or of results, in their order."""
    if isinstance(x, Mapping):
        return list(x.values())
    return list(x) if isinstance(x, (tuple, list)) else [x]


def as_arrays(tensors: Any) -> Any:
    """Return the arrays of a tensor, or of a tuple or mapping of tensors."""
    if isinstance(tensors, Tensor):
        return tensors.data
    return each(as_arrays, tensors) if isinstance(tensors, (tuple, list, Mapping)) else tensors
